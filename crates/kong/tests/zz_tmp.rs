use serde_json::Value;
use weir_kong::*;
#[test]
fn zz() {
    let mut n: std::collections::BTreeMap<String, (u32,u32,std::collections::BTreeSet<String>)> = Default::default();
    for e in std::fs::read_dir("../../tests/recorded/kong").unwrap() {
        let p = e.unwrap().path();
        if p.extension().is_none_or(|x| x != "json") { continue; }
        let v: Value = serde_json::from_str(&std::fs::read_to_string(&p).unwrap()).unwrap();
        for c in v.as_array().unwrap() {
            if c["kind"] == "invalid-config" { continue; }
            let t = c["config"].as_str().unwrap().replace("@UP0@","1").replace("@UP1@","2").replace("@UP2@","3").replace("@DEAD@","4");
            let d = weir_model::document::parse(&t).unwrap();
            let topic = c["name"].as_str().unwrap().split('/').next().unwrap().to_owned();
            let s = n.entry(topic).or_default();
            match translate(&d, &Options::default()) { Ok(_) => s.0 += 1, Err(f) => { s.1 += 1; for x in f { if x.severity==weir_model::Severity::Error { s.2.insert(x.message); } } } }
        }
    }
    for (k, v) in n { eprintln!("{k}: ok {} no {} {:?}", v.0, v.1, v.2); }
    let t = std::fs::read_to_string("/tmp/kongdoor/big.yml").unwrap();
    let a = std::time::Instant::now();
    let d = weir_model::document::parse(&t).unwrap();
    let b = std::time::Instant::now();
    for n in ["routes","services"] { eprintln!("{n}"); }
    let r = weir_kong::document::Document::read(&d).map(|_| ()).map_err(|_| ());
    eprintln!("read {:?} {r:?}", b.elapsed());
    let b = std::time::Instant::now();
    let (m, _) = translate(&d, &Options::default()).unwrap();
    let c = std::time::Instant::now();
    eprintln!("parse {:?} translate {:?} routes {}", b - a, c - b, m.routes.len());
}
