//! Connections and sockets that a pod opened before the loss work after the restore.

use std::io::ErrorKind;
use std::net::TcpStream;

use crate::common::cni::static_ipam;
use crate::common::traffic::{BoundSocket, Connection, reaches};
use crate::common::{GATEWAY4, Node};

#[test]
fn a_tcp_connection_opened_before_the_loss_carries_data_after_the_restore() {
    let node = Node::new();
    let pod = node.pod("web").attach(&static_ipam(&["10.88.2.10/16"]));
    let mut connection = Connection::open(&node, &pod);
    connection
        .carries("before the loss")
        .expect("a fresh connection");
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    connection
        .carries("after the restore")
        .unwrap_or_else(|e| panic!("the connection did not survive: {e}"));
}

#[test]
fn a_socket_bound_to_the_interface_works_after_the_restore() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let socket = BoundSocket::open(&node, &pod);
    socket.carries("before the loss").expect("a fresh socket");
    node.snapshot();
    node.lose_and_reload();
    socket
        .carries("during the outage")
        .expect_err("nothing can be sent during the outage");
    node.restore();
    socket
        .carries("after the restore")
        .unwrap_or_else(|e| panic!("the bound socket is dead: {e}"));
}

#[test]
fn pods_reach_the_gateway_and_each_other_after_the_restore() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    pods[0].ip(&format!("addr add {}/64 dev eth0", pods[0].address6()));
    assert!(
        reaches(&pods[0], "[fd88::1]:9"),
        "no way to the gateway by IPv6 even before the loss"
    );
    node.snapshot();
    node.lose_and_reload();
    // Once: `reaches` would wait for it.
    let connect = || TcpStream::connect((GATEWAY4, 9)).err();
    let error = pods[0].ns.enter(connect).map(|error| error.kind());
    assert_eq!(error, Some(ErrorKind::NetworkUnreachable));
    node.restore();
    assert!(reaches(&pods[0], "10.88.0.1:9"), "no way to the gateway");
    assert!(
        reaches(&pods[0], "[fd88::1]:9"),
        "no way to the gateway by IPv6"
    );
    assert!(
        reaches(&pods[0], &format!("{}:9", pods[2].address())),
        "no way to another pod"
    );
}
