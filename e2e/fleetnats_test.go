package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// natsServer is a NATS server as its users run it: a process of its own with TLS, JetStream and accounts.
type natsServer struct {
	t       *testing.T
	dir     string
	config  string
	host    string // that it is reached at
	inside  []string
	address string
	cmd     *exec.Cmd

	cert, key string        // files; the certificate is its own authority
	account   nkeys.KeyPair // whose users have credentials
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (n *natsServer) write(name string, text []byte) string {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// trust is what it lets in, as lines of its configuration: users of an account of an operator.
func (n *natsServer) trust() string {
	n.t.Helper()
	operator, system := must(nkeys.CreateOperator())(n.t), must(nkeys.CreateAccount())(n.t)
	n.account = must(nkeys.CreateAccount())(n.t)
	o := jwt.NewOperatorClaims(must(operator.PublicKey())(n.t))
	o.SystemAccount = must(system.PublicKey())(n.t)
	s := jwt.NewAccountClaims(o.SystemAccount)
	a := jwt.NewAccountClaims(must(n.account.PublicKey())(n.t))
	a.Name = "TEAM"
	a.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	return fmt.Sprintf(`
operator: %s
system_account: %s
resolver: MEMORY
resolver_preload: { %s: %s, %s: %s }
`, must(o.Encode(operator))(n.t), s.Subject, s.Subject, must(s.Encode(operator))(n.t), a.Subject, must(a.Encode(operator))(n.t))
}

// makeCertificate makes one for localhost and these addresses.
func (n *natsServer) makeCertificate(at ...net.IP) {
	n.t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(n.t)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: at, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := must(x509.CreateCertificate(rand.Reader, about, about, key.Public(), key))(n.t)
	private := must(x509.MarshalPKCS8PrivateKey(key))(n.t)
	n.key = n.write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	n.cert = n.write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// startNATS starts one; store is how much it keeps on disk at most.
func startNATS(t *testing.T, store string) *natsServer {
	t.Helper()
	n := &natsServer{t: t, dir: t.TempDir(), host: "localhost"}
	n.makeCertificate()
	_, port, _ := net.SplitHostPort(freeAddress(t)) // it is one
	n.config = n.write("nats.conf", fmt.Appendf(nil, `
listen: "127.0.0.1:%s"
tls { cert_file: %q, key_file: %q }
jetstream { store_dir: %q, max_file_store: %s }
%s`, port, n.cert, n.key, n.dir, store, n.trust()))
	n.start()
	return n
}

// start starts it, also again, and returns when clients can come.
func (n *natsServer) start() {
	n.t.Helper()
	log := must(os.Create(filepath.Join(n.dir, "nats.log")))(n.t)
	defer log.Close()
	foreign(n.t, "nats-server")
	argv := append(slices.Clone(n.inside), filepath.Join(tools.root, ".work/bin/nats-server"), "-c", n.config)
	n.cmd = exec.Command(argv[0], argv[1:]...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	cmd := n.cmd
	n.t.Cleanup(func() { ended(cmd) })
	listens := regexp.MustCompile(`Listening for client connections on [0-9.]+:(\d+)`)
	var text []byte
	if !eventually(func() bool {
		text, _ = os.ReadFile(log.Name())
		return listens.Match(text) && bytes.Contains(text, []byte("Server is ready"))
	}) {
		n.t.Fatalf("nats-server: %s", text)
	}
	n.address = "tls://" + n.host + ":" + string(listens.FindSubmatch(text)[1])
}

// said is how often it has said something since it was started.
func (n *natsServer) said(what string) int {
	text, _ := os.ReadFile(filepath.Join(n.dir, "nats.log")) // it is empty, then
	return bytes.Count(text, []byte(what))
}

func (n *natsServer) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

// credentials are those of a user of the account that machines join.
func (n *natsServer) credentials(of nkeys.KeyPair, name string) string {
	n.t.Helper()
	user := must(nkeys.CreateUser())(n.t)
	claims := jwt.NewUserClaims(must(user.PublicKey())(n.t))
	claims.Name = name
	text := must(jwt.FormatUserConfig(must(claims.Encode(of))(n.t), must(user.Seed())(n.t)))(n.t)
	return n.write(name+".creds", text)
}

// Machines join by a NATS server of the user's own, with TLS that the system's certificates check and credentials of an account.
func TestFleetOwnNATS(t *testing.T) {
	needFull(t, "a NATS server in place of a hub, which waits for silences and leases")
	t.Parallel()
	needOutlive(t)
	n := startNATS(t, "2G")
	machine := func(name string) *joined {
		j := &joined{workspace: newWorkspace(t), name: name}
		j.more = []string{"SSL_CERT_FILE=" + n.cert}
		return j
	}
	join := func(name string) *joined {
		j := machine(name)
		j.member = j.start(t, "member.log", "fleet", "join", "--nats", n.address, "--creds", n.credentials(n.account, name), "--name", name)
		j.says(t, "member.log", `connected to the hub`)
		return j
	}
	a, b := join("a"), join("b")
	one := b.serve(t, "one")
	a.stands(t, "b", "connected")
	want(t, a.run(t, 0, "fleet", "status"), `^This machine is a in the fleet of tls://localhost:`, `^b +connected `)
	a.shows(t, `^b/one +ready `, "status", "--fleet")
	before := one.keptPID(t)
	want(t, a.run(t, 0, "restart", "b/one", "--fleet"), `^b/one: ready after [0-9]+ ms`)
	if one.keptPID(t) == before {
		t.Error("the server was not restarted")
	}
	events := a.follow(t, "watch", "--fleet")
	events.await(t, `^\S+ b: connected`)
	kill(t, one.keptPID(t))
	events.await(t, `b/one@\d+: Server crashed`)

	t.Run("who is not let in", func(t *testing.T) {
		c := machine("c")
		stranger := must(nkeys.CreateAccount())(t)
		want(t, c.run(t, 1, "fleet", "join", "--nats", n.address, "--creds", n.credentials(stranger, "stranger")), `the server refuses the credentials`)
		want(t, c.run(t, 1, "fleet", "join", "--nats", n.address), `the server refuses the credentials`)
		want(t, c.run(t, 2, "fleet", "join", "--nats", n.address, "--creds", c.path("none")), `--creds: .*no such file`)
		c.more = nil // its certificate is of nobody that the system knows
		want(t, c.run(t, 1, "fleet", "join", "--nats", n.address, "--creds", n.credentials(n.account, "c")), `certificate signed by unknown authority`)
	})
	t.Run("a server without room", func(t *testing.T) {
		small := startNATS(t, "100M")
		c := machine("c")
		c.more = []string{"SSL_CERT_FILE=" + small.cert}
		want(t, c.run(t, 1, "fleet", "join", "--nats", small.address, "--creds", small.credentials(small.account, "c")), `insufficient storage.*it needs JetStream, with \d+ MB`)
	})
	p := newPeople(t)
	p.watch(a)
	t.Run("the server is killed", func(t *testing.T) {
		events.forget()
		n.kill()
		events.await(t, `b: not known: this machine has no connection to the hub since `)
		kill(t, one.keptPID(t))
		one.ask(t, "tools/list", nil)
		events.forget()
		p.hearNothing(silenceAndLease(40 * time.Second)) // longer than a silence and a lease: that nobody is heard says nothing of anybody, now and below
		n.start()
		events.await(t, `b: connected`)
		events.await(t, `b/one@\d+: Server crashed`)
		a.stands(t, "b", "connected")
	})
	t.Run("a machine is killed", func(t *testing.T) {
		b.killMember()
		p.hear("The machine b is silent in the fleet") // how its connection ended is known to that server alone
		a.shows(t, `^b +silent, lost (.*\n)+The machine b is lost since .*; people were told by a`, "fleet", "status")
	})
}
