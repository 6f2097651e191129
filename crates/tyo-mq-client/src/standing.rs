//! What a new connection must be told again: who we are, and what we listen to.

/// The most things that are told again.
pub(crate) const MAX_STANDING: usize = 4096;

/// Events to send again, each once, in the order in which they were first sent. Authentication goes first.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    authentication: Option<String>,
    registrations: Vec<Registration>,
}

#[derive(Debug, PartialEq, Eq)]
struct Registration {
    event: &'static str,
    payload: String,
    /// The subscription that it makes, if it makes one.
    listens_to: Option<String>,
}

/// There are too many.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Standing {
    /// Keeps the credentials that were accepted.
    pub(crate) fn authenticate(&mut self, payload: String) {
        self.authentication = Some(payload);
    }

    /// The credentials to begin with.
    pub(crate) fn authentication(&self) -> Option<&str> {
        self.authentication.as_deref()
    }

    /// Keeps a registration; one for the same subscription is replaced.
    pub(crate) fn keep(
        &mut self,
        event: &'static str,
        payload: &str,
        listens_to: Option<&str>,
    ) -> Result<(), Full> {
        let same = |kept: &&mut Registration| match listens_to {
            Some(_) => kept.listens_to.as_deref() == listens_to,
            None => kept.event == event && kept.payload == payload,
        };
        if let Some(kept) = self.registrations.iter_mut().find(same) {
            payload.clone_into(&mut kept.payload);
            return Ok(());
        }
        if self.registrations.len() >= MAX_STANDING {
            return Err(Full);
        }
        self.registrations.push(Registration {
            event,
            payload: payload.to_owned(),
            listens_to: listens_to.map(str::to_owned),
        });
        Ok(())
    }

    /// Forgets a subscription.
    pub(crate) fn forget(&mut self, listens_to: &str) {
        self.registrations
            .retain(|kept| kept.listens_to.as_deref() != Some(listens_to));
    }

    /// The events and their payloads.
    pub(crate) fn registrations(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.registrations
            .iter()
            .map(|kept| (kept.event, kept.payload.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use tyo_mq_protocol::events;

    use super::*;

    fn check(standing: &Standing, expected: &[(&'static str, &str)]) {
        assert!(standing.registrations().eq(expected.iter().copied()));
    }

    #[test]
    fn each_is_kept_once() {
        let mut standing = Standing::default();
        standing.keep(events::CONSUMER, "c", None).unwrap();
        standing.keep(events::SUBSCRIBE, "1", Some("k")).unwrap();
        standing.keep(events::CONSUMER, "c", None).unwrap();
        standing.keep(events::SUBSCRIBE, "2", Some("k")).unwrap();
        check(&standing, &[("CONSUMER", "c"), ("SUBSCRIBE", "2")]);
        standing.forget("k");
        check(&standing, &[("CONSUMER", "c")]);
    }

    #[test]
    fn there_is_a_bound() {
        let mut standing = Standing::default();
        for n in 0..MAX_STANDING {
            standing
                .keep(events::PRODUCER, &n.to_string(), None)
                .unwrap();
        }
        assert_eq!(standing.keep(events::PRODUCER, "more", None), Err(Full));
        assert_eq!(standing.keep(events::PRODUCER, "0", None), Ok(()));
    }
}
