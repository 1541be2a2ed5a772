package deck

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/kong/go-kong/kong"
)

// enterprise are the paths of which decK takes a 404 to mean that there is nothing.
var enterprise = []string{
	"/partials", "/ai-models", "/custom-plugins", "/cloned-plugins",
}

func text(format string, values ...any) *string {
	text := fmt.Sprintf(format, values...)
	return &text
}

func texts(values ...string) []*string {
	var texts []*string
	for _, value := range values {
		texts = append(texts, &value)
	}
	return texts
}

func anything[T any](list []*T, err error) ([]any, error) {
	var entities []any
	for _, entity := range list {
		entities = append(entities, entity)
	}
	return entities, err
}

func created(_ any, err error) error { return err }

// a schemas keeps what has been asked for.
type schemas struct {
	client *kong.Client
	lock   sync.Mutex
	known  map[string]kong.Schema
}

func (s *schemas) get(name string) (kong.Schema, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if schema, ok := s.known[name]; ok {
		return schema, nil
	}
	schema, err := s.client.Schemas.Get(ctx, name)
	s.known[name] = schema
	return schema, err
}

func (s *schemas) fill(name string) func(any) error {
	return func(entity any) error {
		schema, err := s.get(name)
		if err != nil {
			return err
		}
		return kong.FillEntityDefaults(entity, schema)
	}
}

func families(c *kong.Client, factor int) []family {
	schemas := &schemas{client: c, known: map[string]kong.Schema{}}
	cert, key := certificate(false)
	var all []family
	all = append(all, secrets(c, factor, cert, key)...)
	all = append(all, routing(c, factor, schemas)...)
	all = append(all, consumers(c, factor)...)
	return append(all, plugins(c, factor, schemas))
}

func secrets(c *kong.Client, factor int, cert, key string) []family {
	return []family{
		{
			name: "certificates", count: 20 * factor,
			wanted: func(n int) any {
				return &kong.Certificate{ID: id("certificates", n), Cert: &cert, Key: &key, Tags: texts("deck")}
			},
			create: func(e any) error { return created(c.Certificates.Create(ctx, e.(*kong.Certificate))) },
			list:   func() ([]any, error) { return anything(c.Certificates.ListAll(ctx)) },
			remove: func(e any) error { return c.Certificates.Delete(ctx, e.(*kong.Certificate).ID) },
		},
		{
			name: "snis", count: 20 * factor,
			wanted: func(n int) any {
				return &kong.SNI{
					ID: id("snis", n), Name: text("s%d.test", n), Certificate: &kong.Certificate{ID: id("certificates", n)},
				}
			},
			create: func(e any) error { return created(c.SNIs.Create(ctx, e.(*kong.SNI))) },
			list:   func() ([]any, error) { return anything(c.SNIs.ListAll(ctx)) },
			remove: func(e any) error { return c.SNIs.Delete(ctx, e.(*kong.SNI).ID) },
		},
		{
			name: "ca_certificates", count: 5,
			wanted: func(n int) any {
				return &kong.CACertificate{ID: id("ca_certificates", n), Cert: authority(n)}
			},
			create: func(e any) error { return created(c.CACertificates.Create(ctx, e.(*kong.CACertificate))) },
			list:   func() ([]any, error) { return anything(c.CACertificates.ListAll(ctx)) },
			remove: func(e any) error { return c.CACertificates.Delete(ctx, e.(*kong.CACertificate).ID) },
		},
		{
			name: "vaults", count: 5,
			wanted: func(n int) any {
				return &kong.Vault{
					ID: id("vaults", n), Name: text("env"), Prefix: text("vault-%d", n),
					Config: kong.Configuration{"prefix": fmt.Sprintf("SECRET_%d_", n)},
				}
			},
			create: func(e any) error { return created(c.Vaults.Create(ctx, e.(*kong.Vault))) },
			list:   func() ([]any, error) { return anything(c.Vaults.ListAll(ctx)) },
			remove: func(e any) error { return c.Vaults.Delete(ctx, e.(*kong.Vault).ID) },
		},
		{
			name: "key-sets", count: 10 * factor,
			wanted: func(n int) any { return &kong.KeySet{ID: id("key-sets", n), Name: text("set-%d", n)} },
			create: func(e any) error { return created(c.KeySets.Create(ctx, e.(*kong.KeySet))) },
			list:   func() ([]any, error) { return anything(c.KeySets.ListAll(ctx)) },
			remove: func(e any) error { return c.KeySets.Delete(ctx, e.(*kong.KeySet).ID) },
		},
		{
			name: "keys", count: 40 * factor,
			wanted: func(n int) any {
				return &kong.Key{
					ID: id("keys", n), Name: text("key-%d", n), KID: text("kid-%d", n),
					JWK: text(`{"kid":"kid-%d","kty":"oct","k":"c2VjcmV0"}`, n),
					Set: &kong.KeySet{ID: id("key-sets", n%(10*factor))},
				}
			},
			create: func(e any) error { return created(c.Keys.Create(ctx, e.(*kong.Key))) },
			list:   func() ([]any, error) { return anything(c.Keys.ListAll(ctx)) },
			remove: func(e any) error { return c.Keys.Delete(ctx, e.(*kong.Key).ID) },
		},
	}
}

func routing(c *kong.Client, factor int, schemas *schemas) []family {
	ofUpstream := func(n int) *string { return id("upstreams", n/2) }
	return []family{
		{
			name: "upstreams", count: 50 * factor, fill: schemas.fill("upstreams"),
			wanted: func(n int) any { return &kong.Upstream{ID: id("upstreams", n), Name: text("u%d.test", n)} },
			create: func(e any) error { return created(c.Upstreams.Create(ctx, e.(*kong.Upstream))) },
			list:   func() ([]any, error) { return anything(c.Upstreams.ListAll(ctx)) },
			remove: func(e any) error { return c.Upstreams.Delete(ctx, e.(*kong.Upstream).ID) },
		},
		{
			name: "targets", count: 100 * factor, fill: schemas.fill("targets"),
			wanted: func(n int) any {
				return &kong.Target{
					ID: id("targets", n), Target: text("127.0.0.1:%d", 1000+n), Upstream: &kong.Upstream{ID: ofUpstream(n)},
				}
			},
			create: func(e any) error {
				target := e.(*kong.Target)
				return created(c.Targets.Create(ctx, target.Upstream.ID, target))
			},
			list: func() ([]any, error) {
				var all []any
				upstreams, err := c.Upstreams.ListAll(ctx)
				for _, upstream := range upstreams {
					targets, err := anything(c.Targets.ListAll(ctx, upstream.ID))
					if err != nil {
						return nil, err
					}
					all = append(all, targets...)
				}
				return all, err
			},
			remove: func(e any) error {
				target := e.(*kong.Target)
				return c.Targets.Delete(ctx, target.Upstream.ID, target.ID)
			},
		},
		{
			name: "services", count: 300 * factor, fill: schemas.fill("services"),
			wanted: func(n int) any {
				return &kong.Service{
					ID: id("services", n), Name: text("service-%d", n), Host: text("u%d.test", n%(50*factor)),
					Path: text("/base"), Tags: texts("deck", "team-a"),
				}
			},
			create: func(e any) error { return created(c.Services.Create(ctx, e.(*kong.Service))) },
			list:   func() ([]any, error) { return anything(c.Services.ListAll(ctx)) },
			remove: func(e any) error { return c.Services.Delete(ctx, e.(*kong.Service).ID) },
		},
		{
			name: "routes", count: 600 * factor, fill: schemas.fill("routes"),
			wanted: func(n int) any {
				return &kong.Route{
					ID: id("routes", n), Name: text("route-%d", n), Paths: []*string{text("/r/%d", n)},
					Methods: texts("GET", "POST"), Hosts: texts("a.test"), Service: &kong.Service{ID: id("services", n/2)},
				}
			},
			create: func(e any) error { return created(c.Routes.Create(ctx, e.(*kong.Route))) },
			list:   func() ([]any, error) { return anything(c.Routes.ListAll(ctx)) },
			remove: func(e any) error { return c.Routes.Delete(ctx, e.(*kong.Route).ID) },
		},
	}
}

func consumers(c *kong.Client, factor int) []family {
	of := func(n int) *kong.Consumer { return &kong.Consumer{ID: id("consumers", n)} }
	return []family{
		{
			name: "consumers", count: 200 * factor,
			wanted: func(n int) any {
				return &kong.Consumer{ID: id("consumers", n), Username: text("user-%d", n), CustomID: text("c-%d", n)}
			},
			create: func(e any) error { return created(c.Consumers.Create(ctx, e.(*kong.Consumer))) },
			list:   func() ([]any, error) { return anything(c.Consumers.ListAll(ctx)) },
			remove: func(e any) error { return c.Consumers.Delete(ctx, e.(*kong.Consumer).ID) },
		},
		{
			name: "key-auths", count: 100 * factor,
			wanted: func(n int) any {
				return &kong.KeyAuth{ID: id("key-auths", n), Key: text("apikey-%d", n), Consumer: of(n)}
			},
			create: func(e any) error {
				return created(c.KeyAuths.Create(ctx, e.(*kong.KeyAuth).Consumer.ID, e.(*kong.KeyAuth)))
			},
			list:   func() ([]any, error) { return anything(c.KeyAuths.ListAll(ctx)) },
			remove: func(e any) error { return c.KeyAuths.Delete(ctx, e.(*kong.KeyAuth).Consumer.ID, e.(*kong.KeyAuth).ID) },
		},
		{
			name: "jwts", count: 50 * factor,
			wanted: func(n int) any {
				return &kong.JWTAuth{
					ID: id("jwts", n), Key: text("iss-%d", n), Secret: text("secret"), Algorithm: text("HS256"), Consumer: of(n),
				}
			},
			create: func(e any) error {
				return created(c.JWTAuths.Create(ctx, e.(*kong.JWTAuth).Consumer.ID, e.(*kong.JWTAuth)))
			},
			list:   func() ([]any, error) { return anything(c.JWTAuths.ListAll(ctx)) },
			remove: func(e any) error { return c.JWTAuths.Delete(ctx, e.(*kong.JWTAuth).Consumer.ID, e.(*kong.JWTAuth).ID) },
		},
		{
			name: "hmac-auths", count: 50 * factor,
			wanted: func(n int) any {
				return &kong.HMACAuth{
					ID: id("hmac-auths", n), Username: text("hmac-%d", n), Secret: text("secret"), Consumer: of(n),
				}
			},
			create: func(e any) error {
				return created(c.HMACAuths.Create(ctx, e.(*kong.HMACAuth).Consumer.ID, e.(*kong.HMACAuth)))
			},
			list: func() ([]any, error) { return anything(c.HMACAuths.ListAll(ctx)) },
			remove: func(e any) error {
				return c.HMACAuths.Delete(ctx, e.(*kong.HMACAuth).Consumer.ID, e.(*kong.HMACAuth).ID)
			},
		},
		{
			name: "basic-auths", count: 30 * factor,
			// The password comes back as its hash, and decK leaves it out of the comparison.
			wanted: func(n int) any {
				return &kong.BasicAuth{ID: id("basic-auths", n), Username: text("basic-%d", n), Consumer: of(n)}
			},
			create: func(e any) error {
				basic := *e.(*kong.BasicAuth)
				basic.Password = text("password")
				return created(c.BasicAuths.Create(ctx, basic.Consumer.ID, &basic))
			},
			list: func() ([]any, error) { return anything(c.BasicAuths.ListAll(ctx)) },
			remove: func(e any) error {
				return c.BasicAuths.Delete(ctx, e.(*kong.BasicAuth).Consumer.ID, e.(*kong.BasicAuth).ID)
			},
		},
		{
			name: "acls", count: 100 * factor,
			wanted: func(n int) any {
				return &kong.ACLGroup{ID: id("acls", n), Group: text("group-%d", n%10), Consumer: of(n)}
			},
			create: func(e any) error {
				return created(c.ACLs.Create(ctx, e.(*kong.ACLGroup).Consumer.ID, e.(*kong.ACLGroup)))
			},
			list:   func() ([]any, error) { return anything(c.ACLs.ListAll(ctx)) },
			remove: func(e any) error { return c.ACLs.Delete(ctx, e.(*kong.ACLGroup).Consumer.ID, e.(*kong.ACLGroup).ID) },
		},
		{
			name: "oauth2", count: 20 * factor,
			wanted: func(n int) any {
				return &kong.Oauth2Credential{
					ID: id("oauth2", n), Name: text("app-%d", n), ClientID: text("client-%d", n), ClientSecret: text("secret"),
					RedirectURIs: texts("http://x.test/cb"), Consumer: of(n),
				}
			},
			create: func(e any) error {
				credential := e.(*kong.Oauth2Credential)
				return created(c.Oauth2Credentials.Create(ctx, credential.Consumer.ID, credential))
			},
			list: func() ([]any, error) { return anything(c.Oauth2Credentials.ListAll(ctx)) },
			remove: func(e any) error {
				credential := e.(*kong.Oauth2Credential)
				return c.Oauth2Credentials.Delete(ctx, credential.Consumer.ID, credential.ID)
			},
		},
	}
}

// configs are plugins with something of their configurations.
var configs = []struct {
	name   string
	config kong.Configuration
}{
	{"key-auth", kong.Configuration{"hide_credentials": true}},
	{"rate-limiting", kong.Configuration{"minute": 5.0}},
	{"cors", kong.Configuration{}},
	{"http-log", kong.Configuration{"http_endpoint": "http://127.0.0.1:9/log"}},
	{"request-transformer", kong.Configuration{"add": map[string]any{"headers": []any{"x-a:b"}}}},
	{"correlation-id", kong.Configuration{}},
	{"opentelemetry", kong.Configuration{"traces_endpoint": "http://127.0.0.1:9/v1/traces"}},
	{"session", kong.Configuration{"secret": "not the standard one"}},
	{"zipkin", kong.Configuration{"static_tags": []any{map[string]any{"name": "a", "value": "b"}}}},
	{"statsd", kong.Configuration{}},
}

func plugins(c *kong.Client, factor int, schemas *schemas) family {
	return family{
		name: "plugins", count: 300 * factor,
		wanted: func(n int) any {
			kind := configs[n%len(configs)]
			plugin := &kong.Plugin{
				ID: id("plugins", n), Name: &kind.name, Config: kind.config.DeepCopy(), Enabled: kong.Bool(true),
			}
			switch number := n / len(configs); {
			case number == 0:
			case number%2 == 0:
				plugin.Service = &kong.Service{ID: id("services", number)}
			default:
				plugin.Route = &kong.Route{ID: id("routes", number)}
			}
			return plugin
		},
		create: func(e any) error { return created(c.Plugins.Create(ctx, e.(*kong.Plugin))) },
		list: func() ([]any, error) {
			list, err := c.Plugins.ListAll(ctx)
			for _, plugin := range list {
				schema, err := schemas.get("plugins/" + *plugin.Name)
				if err != nil {
					return nil, err
				}
				// Former names are told beside the present ones.
				if err := kong.ClearUnmatchingDeprecations(&kong.Plugin{Config: kong.Configuration{}}, plugin, schema); err != nil {
					return nil, err
				}
			}
			return anything(list, err)
		},
		remove: func(e any) error { return c.Plugins.Delete(ctx, e.(*kong.Plugin).ID) },
		fill: func(e any) error {
			plugin := e.(*kong.Plugin)
			schema, err := schemas.get("plugins/" + *plugin.Name)
			if err != nil {
				return err
			}
			return kong.FillPluginsDefaults(plugin, schema)
		},
	}
}

var authorities sync.Map

func authority(number int) *string {
	if known, ok := authorities.Load(number); ok {
		return known.(*string)
	}
	cert, _ := certificate(true)
	authorities.Store(number, &cert)
	return &cert
}

// certificate makes a self-signed certificate and its key.
func certificate(isAuthority bool) (string, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "deck.test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  isAuthority,
		BasicConstraintsValid: true,
		DNSNames:              []string{"deck.test"},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return block("CERTIFICATE", signed), block("PRIVATE KEY", secret)
}
