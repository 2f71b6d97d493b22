//! Requests for single objects.

use std::collections::BTreeMap;

use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::RouteNetlinkMessage;

use super::{BUFFERS, MAX_REQUESTS, Socket};
use crate::kernel::codec::message::Message;
use crate::kernel::codec::{decode, split};
use crate::kernel::{Errno, Error, error::errno, trace};

impl Socket {
    /// One request and its single answer.
    pub fn get(&mut self, request: RouteNetlinkMessage) -> Result<RouteNetlinkMessage, Error> {
        let answer = self.get_all(vec![request])?.pop();
        Ok(answer.unwrap_or(Err(Errno::EIO))?)
    }

    /// Requests that have a single answer each, in batches; the answers are in the order of the requests.
    pub fn get_all(
        &mut self,
        requests: Vec<RouteNetlinkMessage>,
    ) -> Result<Vec<Result<RouteNetlinkMessage, Errno>>, Error> {
        let requests: Vec<_> = requests.into_iter().map(Message::from).collect();
        let mut answers = Vec::with_capacity(requests.len());
        for batch in requests.chunks(MAX_REQUESTS) {
            let answered = Self::patiently(|| self.read_answers(batch))?;
            trace::get(self, batch, &answered);
            answers.extend(answered);
        }
        Ok(answers)
    }

    /// One attempt; `None` when an answer was larger than the buffer, which has grown then.
    fn read_answers(
        &mut self,
        requests: &[Message],
    ) -> Result<Option<Vec<Result<RouteNetlinkMessage, Errno>>>, Error> {
        let messages: Vec<_> = requests.iter().map(|request| (request, 0)).collect();
        let first = self.send(&messages)?;
        let mut answers = BTreeMap::new();
        BUFFERS.with_borrow_mut(|[datagram, _]| {
            while answers.len() < requests.len() {
                if !self.receive_into(datagram)? {
                    return Ok(None);
                }
                for part in split(datagram) {
                    let (header, message) = part?;
                    let answer = match decode(message)?.payload {
                        NetlinkPayload::InnerMessage(Message::Route(object)) => Ok(object),
                        NetlinkPayload::Error(error) => Err(errno(error.raw_code())),
                        _ => continue,
                    };
                    let at = header.sequence_number.wrapping_sub(first);
                    // An earlier attempt may have left others.
                    if (at as usize) < requests.len() {
                        answers.insert(at, answer);
                    }
                }
            }
            Ok(Some(answers.into_values().collect()))
        })
    }
}
