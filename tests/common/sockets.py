# Has sockets on a link until it is killed: "group:ADDRESS", "packet", "any-packet", "router", "bound:PORT" (SO_BINDTODEVICE),
# "lite:PORT" (UDP-Lite), "local:PORT" (the link-local address). Prints "ready" then. SIGUSR1: the sockets leave their groups and join again, packet sockets are
# bound again, the router adds the link again, and beside a bound socket another one is bound. SIGUSR2: they leave.
import signal, socket, struct, sys, time

SOL_IPV6, IPV6_JOIN, IPV6_LEAVE, MRT_INIT, MRT_ADD_VIF, USE_IFINDEX = 41, 20, 21, 200, 202, 8
TENTATIVE = 0x40  # IFA_F_TENTATIVE
link, wanted = sys.argv[1], sys.argv[2:]
sockets = []
bound = []


def membership(sock, group, joins):
    index = socket.if_nametoindex(link)
    if ":" in group:
        option = IPV6_JOIN if joins else IPV6_LEAVE
        sock.setsockopt(SOL_IPV6, option, socket.inet_pton(socket.AF_INET6, group) + struct.pack("i", index))
    else:
        option = socket.IP_ADD_MEMBERSHIP if joins else socket.IP_DROP_MEMBERSHIP
        sock.setsockopt(socket.IPPROTO_IP, option, socket.inet_aton(group) + struct.pack("4si", bytes(4), index))


def route(sock):
    index = socket.if_nametoindex(link)
    sock.setsockopt(socket.IPPROTO_IP, MRT_ADD_VIF, struct.pack("HBBIi4s", 0, USE_IFINDEX, 1, 0, index, bytes(4)))


def bind(word):
    kind, port = word.split(":")
    index = socket.if_nametoindex(link)
    protocol = socket.IPPROTO_UDPLITE if kind == "lite" else 0
    sock = socket.socket(socket.AF_INET6 if kind == "local" else socket.AF_INET, socket.SOCK_DGRAM, protocol)
    if kind != "local":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.encode() + b"\0")
        sock.bind(("0.0.0.0", int(port)))
    else:
        sock.bind((link_local(), int(port), 0, index))
    return sock


def link_local():
    """Waits for duplicate address detection: a tentative address cannot be bound (EADDRNOTAVAIL)."""
    while True:
        for line in open("/proc/net/if_inet6"):
            own, _, _, _, flags, name = line.split()
            if name == link and own.startswith("fe80") and not int(flags, 16) & TENTATIVE:
                return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(own))
        time.sleep(0.05)


def each(joins):
    for word, sock in sockets:
        if word.startswith("group:"):
            membership(sock, word[6:], joins)
        elif word == "packet" and joins:
            sock.bind((link, 0x88B5))
        elif word == "router" and joins:
            route(sock)
        elif word.startswith(("bound:", "lite:", "local:")) and joins:
            bound.append(bind(word))


def open_socket(word):
    if word.startswith("group:"):
        return socket.socket(socket.AF_INET6 if word.count(":") > 1 else socket.AF_INET, socket.SOCK_DGRAM)
    if word.startswith(("bound:", "lite:", "local:")):
        return None
    if word == "router":
        sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
        sock.setsockopt(socket.IPPROTO_IP, MRT_INIT, 1)
        return sock
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0 if word == "packet" else socket.htons(0x88B5))


def again(*_):
    each(False)
    each(True)
    print("again", flush=True)


def leave(*_):
    each(False)
    print("left", flush=True)


sockets = [(word, open_socket(word)) for word in wanted]
each(True)
signal.signal(signal.SIGUSR1, again)
signal.signal(signal.SIGUSR2, leave)
print("ready", flush=True)
while True:
    signal.pause()
