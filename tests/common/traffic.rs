//! Connections and bound sockets that must survive a loss.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::BindToDevice};

use super::background::wait_until;
use super::namespace::Namespace;
use super::node::{GATEWAY4, Node};
use super::pod::Pod;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A TCP connection from a pod to a server in the gateway's namespace.
pub struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Connection {
    pub fn open(node: &Node, pod: &Pod<'_>) -> Self {
        Self::from(node, &pod.ns, GATEWAY4)
    }

    /// From another namespace, to an address that leads to the gateway.
    pub fn from(node: &Node, ns: &Namespace, to: &str) -> Self {
        let listener = node
            .gateway
            .enter(|| TcpListener::bind((GATEWAY4, 0)))
            .expect("a listener at the gateway");
        let port = listener.local_addr().expect("an address").port();
        let address = SocketAddr::new(to.parse().expect("an address"), port);
        let client = ns.enter(|| TcpStream::connect_timeout(&address, TIMEOUT));
        let client =
            client.unwrap_or_else(|e| panic!("{} cannot connect to {address}: {e}", ns.name()));
        let (server, _) = listener.accept().expect("a connection at the gateway");
        for stream in [&client, &server] {
            stream
                .set_read_timeout(Some(TIMEOUT))
                .expect("a read timeout");
        }
        Self { client, server }
    }

    /// Sends one text in each direction.
    pub fn carries(&mut self, text: &str) -> std::io::Result<()> {
        send(&mut self.client, &mut self.server, text)?;
        send(&mut self.server, &mut self.client, text)
    }
}

fn send(from: &mut TcpStream, to: &mut TcpStream, text: &str) -> std::io::Result<()> {
    from.write_all(text.as_bytes())?;
    let mut buffer = vec![0; text.len()];
    to.read_exact(&mut buffer)?;
    assert_eq!(buffer, text.as_bytes(), "another text arrived");
    Ok(())
}

/// A UDP socket bound to the pod's `eth0`, and its peer at the gateway.
pub struct BoundSocket {
    socket: UdpSocket,
    echo: UdpSocket,
    target: SocketAddr,
}

impl BoundSocket {
    pub fn open(node: &Node, pod: &Pod<'_>) -> Self {
        let echo = node
            .gateway
            .enter(|| UdpSocket::bind((GATEWAY4, 0)))
            .expect("a socket at the gateway");
        let target = echo.local_addr().expect("the socket's address");
        let socket = pod
            .ns
            .enter(|| UdpSocket::bind("0.0.0.0:0"))
            .expect("a socket in the pod");
        setsockopt(&socket, BindToDevice, &"eth0".into()).expect("SO_BINDTODEVICE eth0");
        for socket in [&socket, &echo] {
            socket
                .set_read_timeout(Some(Duration::from_secs(5)))
                .expect("a read timeout");
        }
        Self {
            socket,
            echo,
            target,
        }
    }

    /// One datagram in each direction.
    pub fn carries(&self, text: &str) -> std::io::Result<()> {
        let mut buffer = [0; 512];
        self.socket.send_to(text.as_bytes(), self.target)?;
        let (length, from) = self.echo.recv_from(&mut buffer)?;
        assert_eq!(&buffer[..length], text.as_bytes(), "another text arrived");
        self.echo.send_to(text.as_bytes(), from)?;
        let (length, _) = self.socket.recv_from(&mut buffer)?;
        assert_eq!(&buffer[..length], text.as_bytes(), "another text came back");
        Ok(())
    }
}

/// Whether the pod reaches an address by TCP within a few seconds; a refused connection counts as reached.
pub fn reaches(pod: &Pod<'_>, address: &str) -> bool {
    let address: SocketAddr = address.parse().unwrap_or_else(|e| panic!("{address}: {e}"));
    let once = || match pod
        .ns
        .enter(|| TcpStream::connect_timeout(&address, Duration::from_secs(3)))
    {
        Ok(_) => true,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionRefused,
    };
    wait_until(once)
}
