#!/usr/bin/env python3
"""Checks a gateway against the recorded behaviour of Apache APISIX (standalone apisix.yaml).

  run_cases.py *.json --start 'weir run -c {config} --listen 127.0.0.1:{port} --status 127.0.0.1:{status_port} --apisix-router {router}' \\
      --ready 'http://127.0.0.1:{status_port}/status/ready' [--validate 'weir check {config}'] [--filter REGEX] [--out result.json] [-q]

Config texts use upstream ports 1980,1981,1982; with --echo-base B they are rewritten to B,B+1,B+2 on the fly (both in
the config / requests and back in what is observed).  Case fields:
  door, name, config, [router], [fresh] (config must be re-applied so counters start at zero), steps[]
  step.request {method,target,headers[[n,v]],body,version,[body_b64]}; "${name}" in target/headers/body = captured value,
               "${N}" = a per-case nonce (observed values are mapped back to the literal ${N})
  step.hmac {key_id,secret,algorithm,signed_headers,[date_offset],[digest]}: runner adds Date + Authorization: Signature
  step.expect {status, headers{name: "exact"|{"regex":..}|[list]}, headers_absent[],
               body null|{json}|{text}|{regex}|{b64}, upstream {reached,[port],method,target,headers,headers_absent,body,
               [query_any_order],[body_as_json]: APISIX re-encoded these, order is not part of the contract},
               also_seen [{port,method,target,headers?,body?}] (what the auxiliary server on 1982 saw),
               elapsed_ms {min,max}}
  step.capture {name:{header,regex}|{body_regex}}
  step.repeat N + expect {statuses{code:count}, ports{port:count}, same_port true, ports_subset [..]}
  step.parallel N + expect {statuses{...}}
  {"sleep_ms": N}
A response header of a gateway-owned family (rate limit, CORS, auth challenge, cookie, redirect, cache, consumer ...) or an
upstream header of the consumer/credential families that the expectation does not list must be absent; {"open": true} lifts this.
kind "invalid-config": the original logged `error_text` and dropped the item; here --validate must refuse the file.
"""
import sys, os, json, re, time, socket, threading, argparse, base64, hashlib, hmac, http.client, importlib.util, glob, subprocess, tempfile, collections
from email.utils import formatdate

# ---------------------------------------------------------------- echo upstreams
def listeners_from(base):
    socks = [socket.socket() for _ in range(3)]
    for i, s in enumerate(socks):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", base + i)); s.listen(128)
    return socks
class Echo:
    def __init__(self, listeners):
        self.log, self.lock = [], threading.Lock()
        for i, s in enumerate(listeners):
            threading.Thread(target=self.accept, args=(s, i), daemon=True).start()
    def accept(self, s, i):
        while True:
            c, _ = s.accept(); c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(c, i), daemon=True).start()
    def serve(self, c, i):
        f = c.makefile("rb")
        try:
            while self.one(c, f, i): pass
        except Exception: pass
        finally:
            try: c.close()
            except Exception: pass
    def one(self, c, f, i):
        line = f.readline(65536)
        if not line: return False
        parts = line.decode("latin1").rstrip("\r\n").split(" ")
        if len(parts) < 3: return False
        method, target, ver = parts[0], " ".join(parts[1:-1]), parts[-1]
        hs = []
        while True:
            l = f.readline(65536).decode("latin1").rstrip("\r\n")
            if not l: break
            n, _, v = l.partition(":"); hs.append([n, v.strip(" \t")])
        low = {}
        for n, v in hs: low.setdefault(n.lower(), []).append(v)
        body = b""
        if "content-length" in low: body = f.read(int(low["content-length"][0]))
        elif "chunked" in ",".join(low.get("transfer-encoding", [])):
            while True:
                sz = int(f.readline().split(b";")[0], 16)
                if sz == 0:
                    while f.readline().strip(): pass
                    break
                body += f.read(sz); f.readline()
        rec = {"port": 1980 + i, "method": method, "target": target, "version": ver, "headers": hs, "body": body.decode("utf-8", "surrogateescape")}
        with self.lock: self.log.append(rec)
        g = lambda k, d=None: low.get(k, [d])[0]
        if g("x-echo-delay-ms"): time.sleep(int(g("x-echo-delay-ms")) / 1000)
        if g("x-echo-close"): return False
        st = int(g("x-echo-status", "200") or 200)
        eh = [x.partition(":") for x in low.get("x-echo-header", [])]
        rb = low.get("x-echo-body")
        if rb is not None: out, ct = rb[0].encode("latin1"), "text/plain"
        else: out, ct = json.dumps(rec, ensure_ascii=True).encode(), "application/json"
        hd = ["HTTP/1.1 %d %s" % (st, http.client.responses.get(st, "X"))]
        if not any(n.strip().lower() == "content-type" for n, _, _ in eh): hd.append("Content-Type: " + ct)
        hd += ["%s: %s" % (n.strip(), v.strip()) for n, _, v in eh]
        hd += ["X-Echo-Upstream: 1", "Content-Length: %d" % len(out)]
        if st in (204, 304): hd.pop()
        c.sendall(("\r\n".join(hd) + "\r\n\r\n").encode("latin1") + (b"" if method == "HEAD" or st in (204, 304) else out))
        return g("connection", "").lower() != "close"

# ---------------------------------------------------------------- client
TIMEOUT_S = 20
def send(proxy, req):
    t0 = time.time()
    s = socket.create_connection(proxy, timeout=TIMEOUT_S)
    try:
        body = base64.b64decode(req["body_b64"]) if "body_b64" in req else (req.get("body") or "").encode("utf-8", "surrogateescape")
        hs = list(req.get("headers") or []); names = {h[0].lower() for h in hs}
        ver = req.get("version") or "1.1"
        if "host" not in names and ver == "1.1": hs.insert(0, ["Host", "127.0.0.1"])
        if body and not names & {"content-length", "transfer-encoding"}: hs.append(["Content-Length", str(len(body))])
        if "connection" not in names: hs.append(["Connection", "close"])
        raw = "%s %s HTTP/%s\r\n" % (req.get("method") or "GET", req["target"], ver) + "".join("%s: %s\r\n" % (a, b) for a, b in hs) + "\r\n"
        if "te-chunked" in req.get("flags", ""):
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        s.sendall(raw.encode("utf-8", "surrogateescape") + body)
        r = http.client.HTTPResponse(s, method=req.get("method") or "GET"); r.begin()
        data = r.read()
        return {"status": r.status, "headers": [[a, b] for a, b in r.msg.items()], "body": data, "ms": (time.time() - t0) * 1000}
    finally: s.close()

def hmac_sign(req, o):
    alg = o.get("algorithm", "hmac-sha256")
    fn = {"hmac-sha1": hashlib.sha1, "hmac-sha256": hashlib.sha256, "hmac-sha512": hashlib.sha512}.get(alg, hashlib.sha256)
    date = formatdate(time.time() + o.get("date_offset", 0), usegmt=True)
    hs = req["headers"]; low = {a.lower(): b for a, b in hs}
    if not o.get("no_date"): hs.append(["Date", date]); low["date"] = date
    if "digest" in o:
        d = base64.b64encode(hashlib.sha256((o["digest"] if isinstance(o["digest"], str) else req.get("body", "")).encode()).digest()).decode()
        hs.append(["Digest", "SHA-256=" + d]); low["digest"] = "SHA-256=" + d
    lines = [o["key_id"]]
    for h in o["signed_headers"]:
        lines.append("%s %s" % (req.get("method", "GET"), req["target"]) if h == "@request-target" else "%s: %s" % (h, low.get(h.lower(), "")))
    msg = "\n".join(lines) + "\n"
    sig = base64.b64encode(hmac.new(o["secret"].encode(), msg.encode(), fn).digest()).decode()
    if o.get("corrupt"): sig = "AAAA" + sig[4:]
    hs.append(["Authorization", 'Signature keyId="%s",algorithm="%s",headers="%s",signature="%s"' % (o["key_id"], alg, " ".join(o["signed_headers"]), sig)])

# ---------------------------------------------------------------- gateway
class Gateway:
    """The gateway under test, started anew for each configuration."""
    def __init__(self, a):
        self.a, self.rev, self.cur, self.proc, self.case_no = a, int(time.time()) % 100000 * 1000, None, None, 0
        self.proxy = ("127.0.0.1", a.port); self.dir = tempfile.mkdtemp(prefix="cases")
    def ports_in(self, t):
        b = self.a.echo_base
        return t if b == 1980 else re.sub(r"(?<!\d)198([012])(?!\d)", lambda m: str(b + int(m.group(1))), t)
    def ports_out(self, t):
        b = self.a.echo_base
        for k in range(3): t = t.replace(str(b + k), str(1980 + k)) if b != 1980 else t
        return t
    def stop(self):
        if self.proc:
            self.proc.terminate()
            try: self.proc.wait(10)
            except subprocess.TimeoutExpired: self.proc.kill(); self.proc.wait()
            self.proc = None
    def apply(self, case):
        """Starts the gateway with the case's configuration; False where the case needs another router than can be asked for."""
        router = case.get("router"); key = (router, case["config"]); self.case_no += 1
        if router and "{router}" not in self.a.start: return False
        if key == self.cur and not case.get("fresh"): return True
        self.stop(); self.cur = None; self.rev += 1
        config = os.path.join(self.dir, "apisix.yaml"); open(config, "w").write(self.ports_in(case["config"]))
        s = socket.socket(); s.bind(("127.0.0.1", 0)); status = s.getsockname()[1]; s.close()
        log = open(os.path.join(self.dir, "log"), "wb")
        self.proc = subprocess.Popen("exec " + self.a.start.format(config=config, port=self.a.port, status_port=status, router=router or "radixtree_host_uri", dir=self.dir), shell=True, stdout=log, stderr=log)
        url = self.a.ready.format(port=self.a.port, status_port=status); end = time.time() + 15
        while time.time() < end:
            if self.proc.poll() is not None: break
            try:
                h, p = re.match(r"http://([^/:]+):(\d+)", url).groups(); c = http.client.HTTPConnection(h, int(p), timeout=2); c.request("GET", url.split("/", 3)[3] and "/" + url.split("/", 3)[3]); ok = c.getresponse().status == 200; c.close()
                if ok: self.cur = key; return True
            except OSError: pass
            time.sleep(0.03)
        raise RuntimeError("did not get ready: " + open(os.path.join(self.dir, "log"), errors="replace").read()[-300:])
    @property
    def nonce(self): return "n%dx%dz" % (self.rev, self.case_no)

# ---------------------------------------------------------------- observe
VOL = {"date", "server", "connection", "keep-alive", "transfer-encoding", "content-length", "x-apisix-upstream-status", "x-echo-upstream"}
UPVOL = {"connection", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "content-length", "te", "date"}
CTL = ("x-echo-",)
def observe(gw, echo, step, vars_):
    vars_["N"] = gw.nonce
    def sub(t): return re.sub(r"\$\{(\w+)\}", lambda m: vars_.get(m.group(1), m.group(0)), t)
    req = json.loads(gw.ports_in(json.dumps(step["request"])))
    req["target"] = sub(req["target"]); req["headers"] = [[a, sub(b)] for a, b in req.get("headers") or []]
    if req.get("body"): req["body"] = sub(req["body"])
    if "hmac" in step: hmac_sign(req, step["hmac"])
    with echo.lock: n0 = len(echo.log)
    r = send(gw.proxy, req)
    if step.get("aux"): time.sleep(0.25)
    with echo.lock: hits = echo.log[n0:]
    hits = [json.loads(gw.ports_out(json.dumps(h)).replace(gw.nonce, "${N}")) for h in hits]
    r["headers"] = [[a, gw.ports_out(b)] for a, b in r["headers"]]
    r["hits"] = hits; r["echo"] = any(a.lower() == "x-echo-upstream" for a, b in r["headers"])
    for k, spec in (step.get("capture") or {}).items():
        src = "\n".join(b for a, b in r["headers"] if a.lower() == spec["header"].lower()) if "header" in spec else r["body"].decode("utf-8", "replace")
        m = re.search(spec.get("regex") or spec.get("body_regex"), src); vars_[k] = m.group(1) if m else ""
    return r
def hmap(hs):
    d = {}
    for a, b in hs: d.setdefault(a.lower(), []).append(b)
    return d
def split_hits(r, step):
    hits = r["hits"]
    if step.get("aux"):
        main = [h for h in hits if h["port"] != 1982]; aux = [h for h in hits if h["port"] == 1982]
    else: main, aux = hits, []
    return (main[-1] if main else None), aux
def is_echo_json(body):
    try: d = json.loads(body); return isinstance(d, dict) and {"port", "method", "target", "headers"} <= set(d)
    except Exception: return False

# ---------------------------------------------------------------- compare
def cmp_val(exp, got):
    if isinstance(exp, dict):
        if "regex" in exp: return any(re.search(exp["regex"], g) for g in got)
        if exp.get("present"): return bool(got)
    if isinstance(exp, list): return exp == got
    return [exp] == got
def cmp_body(e, data):
    if e is None: return True
    try: t = data.decode("utf-8")
    except UnicodeDecodeError: t = data.decode("latin1")
    if "json" in e:
        try: return json.loads(t) == e["json"]
        except Exception: return False
    if "text" in e: return t == e["text"]
    if "b64" in e: return base64.b64encode(data).decode() == e["b64"]
    if "regex" in e: return re.search(e["regex"], t, re.S) is not None
    return True
# a header of these families that the expectation does not list must be absent (unless "open": true)
CLOSED = re.compile(r"^((x-)?ratelimit-.*|x-.*-ratelimit-.*|access-control-.*|www-authenticate|location|set-cookie|vary|content-encoding|timing-allow-origin|apisix-cache-status|age|x-mock-by|x-consumer-.*|x-credential-.*|retry-after|allow|etag)$")
CLOSED_UP = re.compile(r"^(x-consumer-.*|x-credential-.*|authorization|apikey|cookie|x-userinfo|x-request-id)$")
def diff(e, r, step):
    out = []
    if "status" in e and e["status"] != r["status"]: out.append("status %s != expected %s" % (r["status"], e["status"]))
    hm = hmap(r["headers"])
    for k, v in (e.get("headers") or {}).items():
        if not cmp_val(v, hm.get(k.lower(), [])): out.append("header %s: got %r expected %r" % (k, hm.get(k.lower()), v))
    if "headers" in e and not e.get("open"):
        known = {k.lower() for k in e["headers"]}
        out += ["unexpected header %s: %r" % (k, v) for k, v in hm.items() if CLOSED.match(k) and k not in known and not (k == "age")]
    for k in e.get("headers_absent") or []:
        if k.lower() in hm: out.append("header %s should be absent, got %r" % (k, hm[k.lower()]))
    if not cmp_body(e.get("body"), r["body"]): out.append("body: got %r expected %r" % (r["body"][:300], e["body"]))
    main, aux = split_hits(r, step); u = e.get("upstream")
    if u:
        if u.get("reached") != (main is not None): out.append("upstream reached=%s expected %s" % (main is not None, u.get("reached")))
        elif main:
            def same(k):
                if u[k] == main[k]: return True
                if k == "target" and u.get("query_any_order"):
                    a, b = u[k].partition("?"), main[k].partition("?"); return a[0] == b[0] and sorted(a[2].split("&")) == sorted(b[2].split("&"))
                if k == "body" and u.get("body_as_json"):
                    try: return json.loads(u[k]) == json.loads(main[k])
                    except Exception: return False
                return False
            for k in ("method", "target", "body", "port"):
                if k in u and not same(k): out.append("upstream %s: got %r expected %r" % (k, main[k], u[k]))
            um = hmap(main["headers"])
            for k, v in (u.get("headers") or {}).items():
                if not cmp_val(v, um.get(k.lower(), [])): out.append("upstream header %s: got %r expected %r" % (k, um.get(k.lower()), v))
            if "headers" in u and not e.get("open"):
                known = {k.lower() for k in u["headers"]} | ({h[0].lower() for h in step["request"].get("headers") or []} if "hmac" in step or "capture" in step or "${" in json.dumps(step["request"]) else set()) | ({"authorization", "digest"} if "hmac" in step else set())
                out += ["unexpected upstream header %s: %r" % (k, v) for k, v in um.items() if CLOSED_UP.match(k) and k not in known]
            for k in u.get("headers_absent") or []:
                if k.lower() in um: out.append("upstream header %s should be absent, got %r" % (k, um[k.lower()]))
    if "also_seen" in e:
        if len(aux) != len(e["also_seen"]): out.append("also_seen: %d hits expected %d" % (len(aux), len(e["also_seen"])))
        else:
            for x, h in zip(e["also_seen"], aux):
                for k in ("method", "target", "body"):
                    if k in x and x[k] != h[k]: out.append("also_seen %s: got %r expected %r" % (k, h[k], x[k]))
                um = hmap(h["headers"])
                for k, v in (x.get("headers") or {}).items():
                    if not cmp_val(v, um.get(k.lower(), [])): out.append("also_seen header %s: got %r expected %r" % (k, um.get(k.lower()), v))
                for k in x.get("headers_absent") or []:
                    if k.lower() in um: out.append("also_seen header %s should be absent" % k)
    if "elapsed_ms" in e:
        el = e["elapsed_ms"]
        if r["ms"] < el.get("min", 0) or r["ms"] > el.get("max", 1e9): out.append("elapsed %.0f ms not in %r" % (r["ms"], el))
    return out
def agg(gw, echo, step, vars_):
    n = step.get("repeat") or step.get("parallel"); res = []
    if "parallel" in step:
        proxyreq = json.loads(gw.ports_in(json.dumps(step["request"])))
        def w(): res.append(send(gw.proxy, proxyreq))
        ts = [threading.Thread(target=w) for _ in range(n)]
        for t in ts: t.start(); time.sleep(0.02)
        for t in ts: t.join()
        return {"statuses": dict(sorted(collections.Counter(str(r["status"]) for r in res).items()))}
    for _ in range(n): res.append(observe(gw, echo, step, vars_))
    st = dict(sorted(collections.Counter(str(r["status"]) for r in res).items()))
    po = dict(sorted(collections.Counter(str(r["hits"][-1]["port"]) for r in res if r["hits"]).items()))
    return {"statuses": st, "ports": po}
def diff_agg(e, a):
    out = []
    if "statuses" in e and e["statuses"] != a["statuses"]: out.append("statuses %r expected %r" % (a["statuses"], e["statuses"]))
    if "ports" in e and e["ports"] != a.get("ports"): out.append("ports %r expected %r" % (a.get("ports"), e["ports"]))
    if e.get("same_port") and len(a.get("ports") or {}) != 1: out.append("not sticky: %r" % a.get("ports"))
    if "ports_subset" in e and not set(a.get("ports") or {}) <= set(e["ports_subset"]): out.append("ports %r not within %r" % (a.get("ports"), e["ports_subset"]))
    return out

# ---------------------------------------------------------------- record
def check_case(gw, echo, case):
    if case.get("kind") == "invalid-config":
        if not gw.a.validate: return None
        f = tempfile.mktemp(suffix=".yaml"); open(f, "w").write(gw.ports_in(case["config"]))
        x = subprocess.run(gw.a.validate.format(config=f), shell=True, capture_output=True); os.unlink(f)
        return [] if x.returncode else ["accepted; the original says: " + case.get("error_text", "")[:160]]
    if not gw.apply(case): return None
    vars_ = {}; out = []
    for n, st in enumerate(case["steps"]):
        if "sleep_ms" in st: time.sleep(st["sleep_ms"] / 1000); continue
        if "repeat" in st or "parallel" in st: d = diff_agg(st["expect"], agg(gw, echo, st, vars_))
        else:
            try: d = diff(st["expect"], observe(gw, echo, st, vars_), st)
            except (OSError, http.client.HTTPException) as x: d = ["io error %r" % x]
        out += ["step %d (%s %s): %s" % (n, st["request"].get("method", "GET"), st["request"]["target"], x) for x in d]
        if any("timed out" in x for x in d): break
    return out
def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("files", nargs="+"); ap.add_argument("--start", required=True); ap.add_argument("--ready", required=True); ap.add_argument("--validate")
    ap.add_argument("--port", type=int, default=19080); ap.add_argument("--echo-base", type=int, default=21980); ap.add_argument("--filter", default=""); ap.add_argument("--out"); ap.add_argument("-q", action="store_true")
    a = ap.parse_args(); echo = Echo(listeners_from(a.echo_base)); gw = Gateway(a); rows = {}; total = passed = skipped = 0
    try:
        for f in a.files:
            ok = n = 0
            for c in sorted(json.load(open(f)), key=lambda c: (str(c.get("router")), c["config"])):
                if not re.search(a.filter, c["name"]): continue
                try: d = check_case(gw, echo, c)
                except Exception as x: d = ["%s" % x]
                if d is None: skipped += 1; rows[c["name"]] = "skipped"; continue
                n += 1; ok += not d; rows[c["name"]] = d or "passed"
                if d and not a.q: print("FAIL", c["name"], *d[:4], sep="\n    ")
            total += n; passed += ok; print("%s: %d/%d" % (os.path.basename(f), ok, n), flush=True)
    finally: gw.stop()
    print("passed %d of %d, skipped %d" % (passed, total, skipped))
    if a.out: json.dump(rows, open(a.out, "w"), indent=1)
    sys.exit(passed < total)
if __name__ == "__main__": main()
