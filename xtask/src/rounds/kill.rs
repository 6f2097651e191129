//! SIGKILL at random moments under load: what was confirmed is delivered or still there.

use std::time::Duration;

use anyhow::Result;

use super::consumer::{AckPolicy, Consumer, Identity};
use super::drain::{finish, introduce};
use super::ledger::{Ledger, Order, Tally};
use super::load::{Load, ProducerPlan};
use super::random::Random;
use super::stage::Stage;

/// Confirms that a producer which does not wait for each may have open.
pub(super) const WINDOW: usize = 64;

/// Two producers wait for each confirm, two do not.
pub(super) const WINDOWS: [usize; 4] = [1, WINDOW, 1, WINDOW];

/// The most kills of a round while messages arrive; one more follows after the queues were drained.
const MOST_KILLS: u64 = 3;

/// When a broker is killed after its work began.
const KILL_AFTER_MS: (u64, u64) = (5, 700);

pub(super) fn round(stage: &mut Stage, random: &mut Random) -> Result<Tally> {
    let prefetch = *random.pick(&[0, 16, 1000]);
    let away = Identity::alone("away");
    let here = Identity {
        prefetch,
        ..Identity::alone("here")
    };
    let consumers = [away, here];
    let mut ledger = Ledger::default();
    stage.start()?;
    introduce(stage, &consumers, &mut ledger)?;
    for life in 0..random.between(1, MOST_KILLS) {
        if life > 0 {
            stage.start()?;
        }
        // From the second start on, the one with a backlog may be there too.
        let first = usize::from(life == 0 || random.percent(50));
        let join = |who| Consumer::join(stage.addr()?, who, stage.life(), AckPolicy::some(random));
        let joined = consumers[first..].iter().map(join).collect::<Result<_>>()?;
        let load = Load::start(stage.addr()?, &plans(random), joined, &ledger);
        let (least, most) = KILL_AFTER_MS;
        std::thread::sleep(Duration::from_millis(random.between(least, most)));
        stage.kill()?;
        if stage.has_redis() && random.percent(30) {
            let redis = stage.redis()?;
            redis.kill()?;
            redis.start_again()?;
        }
        load.collect(&mut ledger)?;
    }
    stage.start()?;
    finish(stage, &consumers, ledger, Order::PerProducer)
}

fn plans(random: &mut Random) -> Vec<ProducerPlan> {
    let padding = usize::try_from(*random.pick(&[0, 100, 2000])).unwrap_or(0);
    let plan = |(producer, window)| ProducerPlan {
        producer,
        window,
        padding,
    };
    (0..).zip(WINDOWS).map(plan).collect()
}
