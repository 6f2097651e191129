//! The program and a broker behind a proxy that speaks TLS.

use crate::http::serve;
use crate::program::{Program, list, text};
use crate::stage::{ADMIN_TOKEN, Stage};
use crate::tls_proxy::{Authority, Certificate, Proxy};

/// The command at this address, with the authority's file at hand.
fn at(stage: &Stage, url: &str, args: &[&str]) -> Program {
    Program::new(stage.home(), args)
        .env("TYO_MQ_URL", url)
        .env("TYO_MQ_ADMIN_TOKEN", ADMIN_TOKEN)
}

fn proxied(stage: &Stage, certificate: Certificate) -> (Proxy, String) {
    let proxy = Proxy::start(stage.addr(), certificate);
    let url = format!("https://127.0.0.1:{}", proxy.port());
    (proxy, url)
}

/// What is said about the broker not being reached.
#[track_caller]
fn unreachable(program: Program) -> String {
    text(&program.fails(3), &["message"]).to_owned()
}

#[test]
fn an_authority_of_ones_own() {
    let stage = Stage::new();
    let authority = Authority::new("ours");
    let file = stage.file("ca.pem", authority.pem());
    let (proxy, url) = proxied(&stage, authority.certificate("127.0.0.1"));
    let command = ["realm", "list"];
    at(
        &stage,
        &url,
        &[&command[..], &["--ca-file", &file]].concat(),
    )
    .succeeds();
    at(&stage, &url, &command)
        .env("TYO_MQ_CA_FILE", &file)
        .succeeds();
    // As the system's list.
    at(&stage, &url, &command)
        .env("SSL_CERT_FILE", &file)
        .succeeds();
    let wss = format!("wss://127.0.0.1:{}", proxy.port());
    at(&stage, &wss, &["auth", "verify", "--ca-file", &file]).succeeds();

    // A context keeps the file, by its full path.
    let add = ["context", "add", "here", "--ca-file", "ca.pem", "--url"];
    let add = [&add[..], &[&url, "--store-token"]].concat();
    at(&stage, &url, &add).succeeds();
    Program::new(stage.home(), &["stats"]).succeeds();
    let contexts = Program::new(stage.home(), &["context", "list"]).json();
    let kept = text(list(&contexts, "contexts")[0], &["ca_file"]);
    assert!(kept.starts_with('/') && kept.ends_with("ca.pem"), "{kept}");
}

#[test]
fn what_is_not_trusted_is_not_told_a_secret() {
    let stage = Stage::new();
    let authority = Authority::new("ours");
    let file = stage.file("ca.pem", authority.pem());
    let with_file = |url: &str, command: &str| at(&stage, url, &[command, "--ca-file", &file]);

    let stranger = Authority::new("theirs").certificate("127.0.0.1");
    let (_strangers, url) = proxied(&stage, stranger);
    let (_elsewhere, other) = proxied(&stage, authority.certificate("broker.example"));
    for command in ["stats", "metrics", "health"] {
        let said = unreachable(with_file(&url, command));
        assert!(said.contains("not trusted; --ca-file"), "{said}");
        let said = unreachable(with_file(&other, command));
        assert!(
            said.contains("for broker.example, not for 127.0.0.1"),
            "{said}"
        );
    }
    at(&stage, &url, &["stats", "--ca-file", "/nowhere"]).fails(1);
}

#[test]
fn plain_and_not_plain_are_told_apart() {
    let stage = Stage::new();
    let authority = Authority::new("ours");
    let file = stage.file("ca.pem", authority.pem());
    let (proxy, _) = proxied(&stage, authority.certificate("127.0.0.1"));
    let plain = format!("http://127.0.0.1:{}", proxy.port());
    let secure = format!("https://{}", stage.addr());
    for command in ["stats", "metrics", "health"] {
        let said = unreachable(at(&stage, &plain, &[command]));
        assert!(said.contains("begins with https"), "{said}");
        let said = unreachable(at(&stage, &secure, &[command, "--ca-file", &file]));
        assert!(said.contains("does not speak TLS"), "{said}");
        // Who names authorities means TLS.
        at(&stage, &plain, &[command, "--ca-file", &file]).fails(2);
    }
}

#[test]
fn health_and_metrics() {
    let settings = r#"{"host":"127.0.0.1","port":0,"http_api":{"enabled":true}}"#;
    let (addr, _server) = serve(settings);
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("ours");
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    let proxy = Proxy::start(addr, authority.certificate("localhost"));
    let url = format!("https://localhost:{}", proxy.port());
    let get = |command: &str| {
        let args = [command, "--url", &url, "--ca-file", "ca.pem"];
        Program::new(folder.path(), &args)
    };
    assert_eq!(text(&get("health").json(), &["status"]), "ok");
    assert!(
        get("metrics")
            .succeeds()
            .contains("tyo_mq_connections_current")
    );
}
