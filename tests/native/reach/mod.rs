//! Random pods and hosts of which one thing changes: `check` finds a loss where something that answered before does not any more, and
//! only there. Pings and TCP connections judge.
//!
//! `NETFIX_CASES=1000 NETFIX_SEED=7 cargo test --features failpoints,fuzzing --test native reach` runs other ones, and more.

mod case;
mod hour;
mod scene;

use std::sync::Mutex;

use case::{Case, Fixed};
use scene::{LATER, Scene};

use crate::common::{Node, Run};
use crate::roundtrip::{number, side_by_side};

/// How often netfix and the judge are asked again where they differ: the kernel may be at work.
const ROUNDS: usize = 3;

/// What a case showed.
struct End {
    /// The questions that are not answered any more.
    silent: Vec<String>,
    check: Run,
}

impl End {
    /// An error is one of the scene: something does not answer from the start.
    fn of(case: &Case) -> Result<Self, String> {
        let node = Node::without_addresses();
        let pod = node.pod("web");
        let scene = Scene::new(&node, &pod, case)?;
        node.snapshot();
        scene.change(case);
        Ok(Self::now(&node, &scene, case))
    }

    fn now(node: &Node, scene: &Scene<'_>, case: &Case) -> Self {
        let mut rounds = 0;
        loop {
            let silent = scene.silent(&case.questions, LATER);
            if case.is_recorded {
                node.netfix("snapshot");
            }
            let check = node.netfix_json("check");
            let end = Self { silent, check };
            rounds += 1;
            if end.is_right() || rounds == ROUNDS {
                return end;
            }
        }
    }

    fn is_dead(&self) -> bool {
        !self.silent.is_empty()
    }

    /// CRITICAL where something is dead, and OK or WARNING where nothing is.
    fn is_right(&self) -> bool {
        match self.check.code {
            Some(2) => self.is_dead(),
            Some(0 | 1) => !self.is_dead(),
            _ => false,
        }
    }
}

#[test]
fn a_random_change_is_a_loss_where_something_does_not_answer_any_more() {
    let (cases, seed) = (number("NETFIX_CASES", 12), number("NETFIX_SEED", 1));
    let first = number("NETFIX_FIRST", 0);
    let kinds = scene::kinds();
    let ends = Mutex::new(Vec::new());
    side_by_side(first..first + cases, |at| {
        let case = Case::new(
            seed.wrapping_mul(0x1_0000_0001).wrapping_add(at),
            kinds.clone(),
        );
        let end = End::of(&case);
        let (is_dead, why) = match &end {
            Ok(end) if end.is_right() => (end.is_dead(), None),
            Ok(end) => (
                end.is_dead(),
                Some(format!("{:#?}\n{}", end.silent, end.check.transcript())),
            ),
            Err(error) => (false, Some(error.clone())),
        };
        if let Some(why) = &why {
            eprintln!("WRONG case {at} of seed {seed}: {case:#?}\n{why}\n");
        }
        ends.lock()
            .expect("the ends")
            .push((at, is_dead, why.is_none()));
    });
    let ends = ends.into_inner().expect("the ends");
    let dead = ends.iter().filter(|(_, is_dead, _)| *is_dead).count();
    let wrong = ends.iter().filter(|(.., is_right)| !is_right);
    let wrong: Vec<u64> = wrong.map(|(at, ..)| *at).collect();
    let alive = ends.len() - dead;
    eprintln!(
        "seed {seed}: {dead} dead, {alive} alive, {} wrong",
        wrong.len()
    );
    assert!(wrong.is_empty(), "cases {wrong:?} of seed {seed}");
}

/// What is wrong with a case, if anything is.
fn flaw(fixed: &mut Fixed) -> Option<String> {
    let node = Node::without_addresses();
    let pod = node.pod("web");
    let scene = match Scene::new(&node, &pod, &fixed.case) {
        Ok(scene) => scene,
        Err(error) => return Some(error),
    };
    node.snapshot();
    scene.change(&fixed.case);
    for is_recorded in [false, true] {
        fixed.case.is_recorded = is_recorded;
        let end = End::now(&node, &scene, &fixed.case);
        if !end.is_right() || end.is_dead() == fixed.is_alive {
            let check = end.check.transcript();
            return Some(format!("{is_recorded}: {:?}\n{check}", end.silent));
        }
    }
    let restored = node.netfix_alone("restore");
    let end = End::now(&node, &scene, &fixed.case);
    let is_mended = fixed.is_alive || fixed.mends;
    let is_right = end.is_right() && end.is_dead() != is_mended;
    let transcripts = [restored, end.check].map(|run| run.transcript());
    (!is_right).then(|| format!("{:?}\n{transcripts:#?}", end.silent))
}

#[test]
fn what_a_change_takes_is_lost_through_a_snapshot_until_a_restore_mends_it() {
    let wanted = std::env::var("NETFIX_CASE").unwrap_or_default();
    let mut all = Fixed::all(&scene::kinds());
    assert!(all.len() > 30);
    all.retain(|fixed| fixed.name.contains(&*wanted));
    let flaws = Mutex::new(Vec::new());
    let all: Vec<_> = all.into_iter().map(Mutex::new).collect();
    side_by_side(0..all.len() as u64, |at| {
        let at = usize::try_from(at).expect("a small number");
        let mut fixed = all[at].lock().expect("a case");
        if let Some(flaw) = flaw(&mut fixed) {
            eprintln!("WRONG {}: {flaw}\n", fixed.name);
            flaws.lock().expect("the flaws").push(fixed.name);
        }
    });
    let flaws = flaws.into_inner().expect("the flaws");
    assert!(flaws.is_empty(), "{flaws:?}");
}
