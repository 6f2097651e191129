//! JSON web tokens: HS256 and nothing else, with claims of the right type and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use crate::json::{Object, Value};
use crate::names::{RealmName, Role};
use crate::secret::Secret;

/// A token of three parts with the only header we take, not verified yet.
pub(crate) struct Jwt<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    claims: Object,
}

/// What a verified token grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JwtGrant {
    pub(crate) realm: RealmName,
    pub(crate) role: Role,
}

impl<'a> Jwt<'a> {
    /// Takes a token apart; none when it is no token that could ever be verified.
    pub(crate) fn parse(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header = part(header)?;
        if header.get("alg")?.as_str() != Some("HS256") {
            return None;
        }
        Some(Self {
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            claims: part(claims)?,
        })
    }

    /// The realm that it claims.
    pub(crate) fn realm(&self) -> Option<RealmName> {
        RealmName::new(self.claims.get("realm")?.as_str()?)
    }

    /// Checks signature, time and claims.
    pub(crate) fn verify(&self, key: &Secret, now_ms: u64) -> Option<JwtGrant> {
        hmac::verify(&key.hmac_key(), self.signed.as_bytes(), &self.signature).ok()?;
        let now = now_ms as f64 / 1000.0;
        let in_time = time_claim(&self.claims, "exp", |exp| exp > now)
            && time_claim(&self.claims, "nbf", |nbf| nbf <= now);
        if !in_time {
            return None;
        }
        Some(JwtGrant {
            realm: self.realm()?,
            role: Role::parse(self.claims.get("role")?.as_str()?)?,
        })
    }
}

/// A claim that is there must be a finite number: one that cannot be read does not count as absent.
fn time_claim(claims: &Object, name: &str, holds: impl Fn(f64) -> bool) -> bool {
    claims.get(name).is_none_or(|claim| {
        claim
            .as_number()
            .is_some_and(|time| time.is_finite() && holds(time))
    })
}

fn part(encoded: &str) -> Option<Object> {
    let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    match Value::parse(std::str::from_utf8(&bytes).ok()?).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Signs claims, for programs that mint tokens. The claims must be a JSON object.
#[must_use]
pub fn mint(key: &Secret, claims: &Object) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let claims = URL_SAFE_NO_PAD.encode(Value::from(claims.clone()).to_json());
    let signed = format!("{header}.{claims}");
    let tag = hmac::sign(&key.hmac_key(), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_S: u64 = 1_760_000_000;
    const KEY: &str = "alpha-realm-manager-key";
    const EXAMPLE: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyZWFsbSI6ImFscGhhIiwicm9sZSI6ImJvdGgifQ.qvlMq9BpGC7F_hJ5DpIY7HJRm6g0y_y1MD0MG9Pl7OA";

    fn sign(header: &str, claims: &str, key: &str) -> String {
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims)
        );
        let tag = hmac::sign(&Secret::new(key).hmac_key(), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    fn verify(token: &str) -> Option<JwtGrant> {
        Jwt::parse(token)?.verify(&Secret::new(KEY), NOW_S * 1000)
    }

    fn check_claims(claims: &str, expected: Option<&str>) {
        let token = sign(r#"{"alg":"HS256"}"#, claims, KEY);
        let grant = verify(&token).map(|grant| format!("{} {}", grant.realm, grant.role));
        assert_eq!(grant.as_deref(), expected, "{claims}");
    }

    #[test]
    fn example() {
        let grant = verify(EXAMPLE).unwrap();
        assert_eq!((grant.realm.as_str(), grant.role), ("alpha", Role::Both));
        let claims = Object::new().with("realm", "alpha").with("role", "both");
        assert_eq!(mint(&Secret::new(KEY), &claims), EXAMPLE);
    }

    #[test]
    fn algorithms() {
        let claims = r#"{"realm":"alpha","role":"both"}"#;
        for alg in [
            r#""none""#,
            r#""None""#,
            r#""nOnE""#,
            r#""""#,
            r#""HS512""#,
            r#""hs256""#,
            r#""RS256""#,
            "null",
            r#"["HS256"]"#,
            "1",
        ] {
            let header = format!(r#"{{"alg":{alg}}}"#);
            let signed = sign(&header, claims, KEY);
            assert_eq!(verify(&signed), None, "{alg}");
            let (body, _) = signed.rsplit_once('.').unwrap();
            assert_eq!(verify(&format!("{body}.")), None, "{alg}");
        }
        for header in [
            "{}",
            "[]",
            "1",
            "",
            r#"{"alg":"HS256""#,
            r#"{"alg":"HS256","alg":"none"}"#,
        ] {
            assert_eq!(verify(&sign(header, claims, KEY)), None, "{header}");
        }
        assert!(
            verify(&sign(
                r#"{"alg":"HS256","kid":"../x","typ":7}"#,
                claims,
                KEY
            ))
            .is_some()
        );
    }

    #[test]
    fn signatures() {
        let claims = r#"{"realm":"alpha","role":"both"}"#;
        for key in ["", "alpha", "beta-key"] {
            assert_eq!(verify(&sign(r#"{"alg":"HS256"}"#, claims, key)), None);
        }
        for token in [
            "",
            ".",
            "..",
            "...",
            "a.b.c",
            &EXAMPLE[..EXAMPLE.len() - 1],
            &format!("{EXAMPLE}="),
            &format!("{EXAMPLE}.x"),
            &format!(" {EXAMPLE}"),
            &EXAMPLE.replace('_', "/"),
        ] {
            assert_eq!(verify(token), None, "{token}");
        }
        // Bits behind the end of the signature make another text of the same bytes.
        assert_eq!(verify(&EXAMPLE.replace("l7OA", "l7OB")), None);
    }

    #[test]
    fn claims() {
        let with = |more: &str| format!(r#"{{"realm":"alpha","role":"both"{more}}}"#);
        check_claims(&with(""), Some("alpha both"));
        check_claims(
            &with(&format!(r#","exp":{}"#, NOW_S + 1)),
            Some("alpha both"),
        );
        check_claims(&with(&format!(r#","exp":{NOW_S}"#)), None);
        check_claims(&with(&format!(r#","nbf":{NOW_S}"#)), Some("alpha both"));
        check_claims(&with(&format!(r#","nbf":{}"#, NOW_S + 1)), None);
        check_claims(
            &with(r#","iat":"x","aud":[],"sub":null"#),
            Some("alpha both"),
        );
        for odd in [
            r#""soon""#,
            r#""99999999999""#,
            "{}",
            "[]",
            "[99999999999]",
            "true",
            "false",
            "null",
            "0",
            "-1",
            "1e400",
            r#""""#,
        ] {
            check_claims(&with(&format!(r#","exp":{odd}"#)), None);
        }
        for odd in [r#""later""#, "{}", "true", "null", "-1e400", r#""0""#] {
            check_claims(&with(&format!(r#","nbf":{odd}"#)), None);
        }
        check_claims(r#"{"realm":"alpha","role":"wizard"}"#, Some("alpha wizard"));
        for missing in [
            r#"{"realm":"alpha"}"#,
            r#"{"role":"both"}"#,
            r#"{"realm":"","role":"both"}"#,
            r#"{"realm":"alpha","role":""}"#,
            r#"{"realm":{},"role":"both"}"#,
            r#"{"realm":["alpha"],"role":"both"}"#,
            r#"{"realm":"alpha","role":1}"#,
            r#"{"realm":"al\npha","role":"both"}"#,
            r#"{"realm":"\ud800","role":"both"}"#,
            r#"["alpha","both"]"#,
        ] {
            check_claims(missing, None);
        }
    }

    proptest! {
        #[test]
        fn damaged_tokens_grant_nothing(at in 0usize..200, byte in 0u8..128) {
            let mut bytes = EXAMPLE.as_bytes().to_vec();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            prop_assert_eq!(verify(&String::from_utf8(bytes).unwrap()), None);
        }

        #[test]
        fn cut_tokens_grant_nothing(length in 0usize..136) {
            prop_assert_eq!(verify(&EXAMPLE[..length.min(EXAMPLE.len() - 1)]), None);
        }

        #[test]
        fn any_text_grants_nothing(text in ".*") {
            prop_assert_eq!(verify(&text), None);
            prop_assert_eq!(verify(&sign(&text, &text, KEY)), None);
        }
    }
}
