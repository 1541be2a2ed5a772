//! Losing members of etcd: no committed write is lost, every commit is made once or not at all, watches are found
//! again. And documents of other programs.

use crate::etcd::Cluster;
use crate::fixture::{TIMEOUT, commit, delete, put, text, texts, transaction};
use crate::follow::{Copy, lose};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_store::etcd::EtcdStore;
use weir_store::follow::start;
use weir_store::{CommitError, Revision, Store, StoreError};

fn connect(location: &str) -> Arc<dyn Store> {
    Arc::new(EtcdStore::connect(location).expect("a location"))
}

#[tokio::test]
async fn the_leader_is_killed() {
    let mut cluster = Cluster::start(3, &[]).await;
    let store = connect(&cluster.location());
    commit(&*store, vec![put("count", "0")]).await;
    let (documents, _, mut following) = start(store.clone(), "").await.expect("it begins");
    let mut copy = Copy::new(documents);

    let (mut made, mut count, mut unknown) = (BTreeMap::<u32, Revision>::new(), 0, 0);
    for round in 0..3 {
        let killed = cluster.leader();
        for step in 0..20 {
            if step == 3 {
                cluster.kill(killed);
            }
            let (documents, revision) = read_until(&store).await;
            let now: u32 = text(&documents[0]).1.parse().expect("a number");
            assert!(
                now == count || unknown > 0,
                "{now} after {count}: a commit is lost"
            );
            let large = (0..300).map(|number| put(&format!("large/{number}"), &(now + 1).to_string()));
            let mut changes = vec![put("count", &(now + 1).to_string())];
            changes.extend(large.filter(|_| step % 5 == 4));
            match store.commit(transaction(changes), revision).await {
                Ok(revision) => _ = made.insert(now + 1, revision),
                Err(CommitError::Unknown(_)) => unknown += 1,
                Err(CommitError::Store(StoreError::Unreachable(_))) => {}
                Err(error) => panic!("round {round}, step {step}: {error}"),
            }
            count = made.keys().last().copied().unwrap_or(0).max(now);
        }
        cluster.restart(killed);
    }
    assert!(made.len() >= 50, "most of the commits are made: {}", made.len());
    let (documents, _) = read_until(&store).await;
    let last = made.values().last().copied().expect("there is one");
    copy.reach(&mut following, last).await;
    assert_eq!(copy, Copy::new(documents));
    let history = store.history("count", None, 1_000).await.expect("the history");
    let mut afters: Vec<u32> = history
        .iter()
        .filter_map(|it| std::str::from_utf8(it.after.as_deref()?).ok()?.parse().ok())
        .collect();
    afters.reverse();
    assert_eq!(
        afters,
        (0..=count).collect::<Vec<_>>(),
        "each commit is made once"
    );
}

/// Reads until the members that are left have found a leader.
async fn read_until(store: &Arc<dyn Store>) -> (Vec<weir_store::Document>, Revision) {
    let reads = async {
        loop {
            if let Ok(read) = store.read("").await {
                return read;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, reads).await.expect("it is read")
}

#[tokio::test]
async fn all_members_are_away_for_a_while() {
    let mut cluster = Cluster::start(1, &[]).await;
    let store = connect(&cluster.location());
    commit(&*store, vec![put("a", "1")]).await;
    let (documents, _, mut following) = start(store.clone(), "").await.expect("it begins");
    let (mut copy, link) = (Copy::new(documents), following.link());
    cluster.kill(0);
    lose(&mut following).await;
    cluster.restart(0);
    read_until(&store).await;
    let last = commit(&*store, vec![put("a", "2"), put("b", "1")]).await;
    copy.reach(&mut following, last).await;
    assert_eq!(copy, Copy::new(store.read("").await.expect("it is read").0));
    assert!(link.borrow().is_connected());
}

#[tokio::test]
async fn a_document_that_etcd_does_not_take_is_refused() {
    let cluster = Cluster::start(1, &[]).await;
    let store = connect(&cluster.location());
    let first = commit(&*store, vec![put("a", "1")]).await;
    let changes = vec![put("a", "2"), put("b", &"x".repeat(1_500_000))];
    let refused = store.commit(transaction(changes), first).await;
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::TooLarge { .. }))),
        "{refused:?}"
    );
    let second = store.commit(transaction(vec![put("a", "2")]), first).await;
    assert!(second.is_ok(), "nothing of it is left: {second:?}");
}

#[tokio::test]
async fn what_other_programs_write_is_reported_as_it_is() {
    let cluster = Cluster::start(1, &[]).await;
    let store = connect(&cluster.location());
    let first = commit(&*store, vec![put("kong/1", "{}")]).await;
    let mut watch = store.watch("kong/", first).await.expect("it is watched");
    let foreign = |name: &str, value: &str| {
        let (name, value) = (
            STANDARD.encode(format!("/test/docs/{name}")),
            STANDARD.encode(value),
        );
        let answer = cluster.call(
            0,
            "/v3/kv/put",
            &format!("{{\"key\": \"{name}\", \"value\": \"{value}\"}}"),
        );
        assert!(answer.contains(" 200 OK"), "{answer}");
    };
    foreign("kong/2", "not even JSON");
    foreign("kong//no-key", "never mind");
    let changes = watch.next().await.expect("it is told");
    assert!(changes.revision > first);
    let documents: Vec<_> = changes
        .documents
        .iter()
        .filter_map(|(_, it)| it.as_ref())
        .collect();
    assert_eq!(
        documents.iter().map(|it| text(it)).collect::<Vec<_>>(),
        texts(&[("kong/2", "not even JSON")])
    );
    let (documents, _) = store.read("").await.expect("it is read");
    let expected = texts(&[("kong/1", "{}"), ("kong/2", "not even JSON")]);
    assert_eq!(documents.iter().map(text).collect::<Vec<_>>(), expected);
    // Who has not seen it may write elsewhere, but not over it.
    let over = store.commit(transaction(vec![put("kong/2", "{}")]), first).await;
    assert!(
        matches!(over, Err(CommitError::Conflict { current }) if current == changes.revision),
        "{over:?}"
    );
    let elsewhere = store
        .commit(transaction(vec![put("kong/3", "{}")]), first)
        .await
        .expect("it is made");
    let removed = store.commit(transaction(vec![delete("kong/2")]), elsewhere).await;
    let removed = removed.expect("it is made");
    let history = store.history("kong/2", None, 10).await.expect("the history");
    assert_eq!((history.len(), history[0].revision), (1, removed));
    assert_eq!(history[0].before.as_deref(), Some(&b"not even JSON"[..]));
}

/// With users and passwords: the store logs in, and again when its token is no longer good.
#[tokio::test]
async fn passwords_are_used() {
    let mut cluster = Cluster::start(1, &[]).await;
    for (path, body) in [
        ("/v3/auth/user/add", r#"{"name": "root", "password": "s3cr@t"}"#),
        ("/v3/auth/role/add", r#"{"name": "root"}"#),
        ("/v3/auth/user/grant", r#"{"user": "root", "role": "root"}"#),
        ("/v3/auth/enable", "{}"),
    ] {
        let answer = cluster.call(0, path, body);
        assert!(answer.contains(" 200 OK"), "{path}: {answer}");
    }
    let address = cluster.location();
    let address = address.trim_start_matches("etcd://");
    let store = connect(&format!("etcd://root:s3cr%40t@{address}"));
    let first = commit(&*store, vec![put("a", "1")]).await;
    // A member that has started again knows no tokens.
    cluster.kill(0);
    cluster.restart(0);
    read_until(&store).await;
    let mut watch = store.watch("", first).await.expect("it is watched");
    let second = commit(&*store, vec![put("a", "2")]).await;
    assert_eq!(watch.next().await.expect("the watch goes on").revision, second);
    for wrong in ["", "root:wrong@"] {
        let refused = connect(&format!("etcd://{wrong}{address}")).read("").await;
        let error = refused.expect_err("it is refused").to_string();
        assert!(!error.contains("wrong"), "{error}");
    }
}

/// With certificates of an authority of one's own on both sides.
#[tokio::test]
async fn tls_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write =
        |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("it is written");
    let key = || KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(parameters, key()).expect("an authority");
    write("ca.pem", authority.pem());
    for (name, host) in [("server", "127.0.0.1"), ("client", "weir")] {
        let key = key();
        let mut parameters = CertificateParams::new([host.to_owned()]).expect("parameters");
        parameters.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = parameters.signed_by(&key, &authority).expect("a certificate");
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
    let files = ["ca.pem", "server.pem", "server.key", "client.pem", "client.key"].map(path);
    let [ca, certificate, key, client, client_key] = &files;
    let options = [
        format!("--cert-file={certificate}"),
        format!("--key-file={key}"),
        format!("--trusted-ca-file={ca}"),
        "--client-cert-auth".to_owned(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let query = format!("?ca={ca}&cert={client}&key={client_key}");
    let cluster = Cluster::start_with(1, &options, &query).await;
    let store = connect(&cluster.location());
    let first = commit(&*store, vec![put("a", "1")]).await;
    assert!(
        store
            .read("")
            .await
            .is_ok_and(|(documents, _)| documents[0].modified == first)
    );
    // Without a certificate of its own, or with another authority's, it is refused.
    let address = cluster.location().replace(&query, "");
    let [no_certificate, another_authority] = [
        connect(&format!("{address}?ca={ca}")),
        connect(&format!("{address}?ca={client}&cert={client}&key={client_key}")),
    ];
    let (one, other) = tokio::join!(no_certificate.read(""), another_authority.read(""));
    for refused in [one, other] {
        assert!(matches!(refused, Err(StoreError::Unreachable(_))), "{refused:?}");
    }
}
