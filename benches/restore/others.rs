//! What others see that create a pod meanwhile: a macvlan on the node's `eth0`, moved into a namespace, with an address and a route,
//! as a CNI plugin does it.

use std::fs::File;
use std::net::Ipv4Addr;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use netlink_sys::Socket;
use nix::net::if_::if_nametoindex;

use crate::common::namespace::Namespace;
use crate::floor::{Message, delete, exchange, macvlan, move_to, open, settings};
use crate::lab::Lab;

/// After the end of a program, the kernel destroys its namespaces.
const AFTER: Duration = Duration::from_millis(500);
/// A pod is created this long after the one before.
const PAUSE: Duration = Duration::from_millis(2);

pub struct Other {
    ns: Namespace,
    parent: u32,
    node: Socket,
    pod: Socket,
}

impl Other {
    pub fn new(lab: &Lab) -> Self {
        let ns = Namespace::new(&format!("{}-other", lab.node.ns.name()));
        let (node, parent) = lab
            .node
            .ns
            .enter(|| (open(), if_nametoindex("eth0").expect("eth0")));
        let pod = ns.enter(open);
        Self {
            ns,
            parent,
            node,
            pod,
        }
    }

    /// Creates pods as long as a program runs, and until its namespaces are gone: how long each took.
    pub fn beside(&mut self, child: &mut Child) -> Vec<Duration> {
        let mut until = None;
        self.while_(|| {
            if until.is_none() && child.try_wait().expect("a child").is_some() {
                until = Some(Instant::now() + AFTER);
            }
            until.is_none_or(|until| Instant::now() < until)
        })
    }

    /// Creates as many pods while nothing else runs.
    pub fn alone(&mut self, mut count: usize) -> Vec<Duration> {
        self.while_(|| {
            count = count.saturating_sub(1);
            count > 0
        })
    }

    fn while_(&mut self, mut goes_on: impl FnMut() -> bool) -> Vec<Duration> {
        let mut times = Vec::new();
        while goes_on() {
            times.push(self.add());
            thread::sleep(PAUSE);
        }
        times
    }

    fn add(&mut self) -> Duration {
        let file = File::open(self.ns.path()).expect("a namespace");
        let start = Instant::now();
        let mac = [2, 1, 0, 0x99, 0, 0];
        exchange(
            &mut self.node,
            &last(macvlan(b"other\0", &mac, self.parent)),
        );
        exchange(&mut self.node, &last(move_to(&file)));
        exchange(&mut self.pod, &settings(Ipv4Addr::new(10, 88, 200, 1)));
        let took = start.elapsed();
        exchange(&mut self.pod, &last(delete()));
        took
    }
}

fn last(mut message: Message) -> Vec<u8> {
    message.request_ack();
    message.finish()
}
