package monitor

import (
	"context"
	"database/sql/driver"
	"errors"
)

// keeping connects to a database by a driver that prepares a statement each time it is used, and keeps each for its next use: a look
// asks the same again and again, and to prepare it costs more than to run it. The texts are constants, so there are not many.
type keeping struct {
	driver driver.Driver
	name   string
}

// Driver implements [driver.Connector].
func (k keeping) Driver() driver.Driver { return k.driver }

// Connect implements [driver.Connector].
func (k keeping) Connect(context.Context) (driver.Conn, error) {
	c, err := k.driver.Open(k.name)
	if err != nil {
		return nil, err
	}
	return &keptConn{connection: c.(connection), idle: map[string]*keptStatement{}}, nil
}

// connection is what package sql is to see of the driver's. It runs no text at once, so package sql prepares each.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.SessionResetter
	driver.Validator
}

// keptConn is a connection with its statements. Package sql calls it and them from one goroutine at a time.
type keptConn struct {
	connection
	idle map[string]*keptStatement // by their texts
}

// Prepare implements [driver.Conn]. A statement whose rows are being read is not idle: the same text is another one then.
func (c *keptConn) Prepare(text string) (driver.Stmt, error) {
	if s := c.idle[text]; s != nil {
		delete(c.idle, text)
		return s, nil
	}
	s, err := c.connection.Prepare(text)
	if err != nil {
		return nil, err
	}
	return &keptStatement{statement: s.(statement), conn: c, text: text}, nil
}

// Close implements [driver.Conn].
func (c *keptConn) Close() error {
	var errs []error
	for _, s := range c.idle {
		errs = append(errs, s.statement.Close())
	}
	clear(c.idle)
	return errors.Join(append(errs, c.connection.Close())...)
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type keptStatement struct {
	statement
	conn *keptConn
	text string
}

// Close implements [driver.Stmt]: it is idle from now on. The driver has reset it.
func (s *keptStatement) Close() error {
	if s.conn.idle[s.text] != nil {
		return s.statement.Close()
	}
	s.conn.idle[s.text] = s
	return nil
}
