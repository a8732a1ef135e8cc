package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// natsServer is a NATS server as its users run it: a process of its own with TLS, JetStream, and accounts whose users have credentials.
type natsServer struct {
	t       *testing.T
	dir     string
	config  string
	address string
	account nkeys.KeyPair
	cmd     *exec.Cmd
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

// startNATS starts one; store is how much it keeps on disk at most.
func startNATS(t *testing.T, store string) *natsServer {
	t.Helper()
	n := &natsServer{t: t, dir: t.TempDir()}
	operator, system := must(nkeys.CreateOperator())(t), must(nkeys.CreateAccount())(t)
	n.account = must(nkeys.CreateAccount())(t)
	o := jwt.NewOperatorClaims(must(operator.PublicKey())(t))
	o.SystemAccount = must(system.PublicKey())(t)
	s := jwt.NewAccountClaims(o.SystemAccount)
	a := jwt.NewAccountClaims(must(n.account.PublicKey())(t))
	a.Name = "TEAM"
	a.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	key, certificate := n.certificate()
	n.config = n.write("nats.conf", fmt.Appendf(nil, `
listen: "127.0.0.1:%%s"
operator: %s
system_account: %s
resolver: MEMORY
resolver_preload: { %s: %s, %s: %s }
tls { cert_file: %q, key_file: %q }
jetstream { store_dir: %q, max_file_store: %s }
ports_file_dir: %q
`, must(o.Encode(operator))(t), s.Subject, s.Subject, must(s.Encode(operator))(t), a.Subject, must(a.Encode(operator))(t), certificate, key, n.dir, store, n.dir))
	n.start(regexp.MustCompile(`\d+$`).FindString(freeAddress(t)))
	return n
}

// certificate makes one for localhost, which is its own authority.
func (n *natsServer) certificate() (keyFile, certFile string) {
	n.t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(n.t)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must(x509.CreateCertificate(rand.Reader, about, about, key.Public(), key))(n.t)
	private := must(x509.MarshalPKCS8PrivateKey(key))(n.t)
	return n.write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		n.write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// start starts it, also again at the same port.
func (n *natsServer) start(port string) {
	n.t.Helper()
	text := must(os.ReadFile(n.config))(n.t)
	config := n.write("now.conf", fmt.Appendf(nil, string(text), port))
	log := must(os.Create(filepath.Join(n.dir, "nats.log")))(n.t)
	defer log.Close()
	foreign(n.t, "nats-server")
	n.cmd = exec.Command(filepath.Join(tools.root, ".work/bin/nats-server"), "-c", config)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	cmd := n.cmd
	n.t.Cleanup(func() { ended(cmd) })
	re := regexp.MustCompile(`Listening for client connections on 127\.0\.0\.1:(\d+)`)
	ready := regexp.MustCompile(`Server is ready`)
	if !eventually(func() bool {
		text, _ = os.ReadFile(log.Name())
		return re.Match(text) && ready.Match(text)
	}) {
		n.t.Fatalf("nats-server: %s", text)
	}
	n.address = "tls://localhost:" + string(re.FindSubmatch(text)[1])
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
	needFull(t, "a second kind of hub, which waits for silences and leases")
	t.Parallel()
	needOutlive(t)
	n := startNATS(t, "2G")
	machine := func(name string) *joined {
		j := &joined{workspace: newWorkspace(t), name: name}
		j.more = []string{"SSL_CERT_FILE=" + filepath.Join(n.dir, "cert.pem")}
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
		c.more = []string{"SSL_CERT_FILE=" + filepath.Join(small.dir, "cert.pem")}
		want(t, c.run(t, 1, "fleet", "join", "--nats", small.address, "--creds", small.credentials(small.account, "c")), `insufficient storage.*it needs JetStream, with \d+ MB`)
	})
	p := newPeople(t)
	p.watch(a)
	t.Run("the server is killed", func(t *testing.T) {
		events.forget()
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
		events.await(t, `b: not known: this machine has no connection to the hub since `)
		kill(t, one.keptPID(t))
		one.ask(t, "tools/list", nil)
		events.forget()
		p.hearNothing(silenceAndLease(40 * time.Second)) // longer than a silence and a lease: that nobody is heard says nothing of anybody, now and below
		n.start(regexp.MustCompile(`\d+$`).FindString(n.address))
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
