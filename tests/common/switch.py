# The other end of a wire, on all interfaces of its namespace: MODE [ADDRESS...]
# track: probes for an address when it sees a probe for it, as a switch that tracks its hosts
# track-local: the same, but its solicitations have its link-local address as their source
# answer: answers a probe, for ADDRESS or for every address, as a router with proxy ARP
# suppress: answers a probe, as answer does, with the MAC of the asker, as a switch does that suppresses ARP
# claim: probes for an address when it sees a probe for it, and announces it then, as a machine that wants it
# return: sends broadcasts and multicasts back to where they came from, as a loop does
import socket, struct, sys

MAC = bytes.fromhex("0200008800fe")
ALL, NODES = b"\xff" * 6, socket.inet_pton(socket.AF_INET6, "ff02::1")
LOCAL = socket.inet_pton(socket.AF_INET6, "fe80::88:fe")
ALL_PROTOCOLS, OUTGOING = 3, 4


def arp(destination, operation, sender, receiver, target, mac=MAC):
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation)
    return destination + MAC + b"\x08\x06" + body + mac + sender + receiver + target


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def icmp(source, destination, body):
    pseudo = source + destination + struct.pack("!II", len(body), 58)
    body = body[:2] + struct.pack("!H", checksum(pseudo + body)) + body[4:]
    header = struct.pack("!IHBB", 0x60000000, len(body), 58, 255)
    return b"\x33\x33" + destination[12:] + MAC + b"\x86\xdd" + header + source + destination + body


def solicitation(source, target):
    group = NODES[:11] + b"\x01\xff" + target[13:]
    option = bytes([1, 1]) + MAC if any(source) else b""
    return icmp(source, group, struct.pack("!BBHI", 135, 0, 0, 0) + target + option)


def advertisement(target, mac=MAC):
    return icmp(target, NODES, struct.pack("!BBHI", 136, 0, 0, 0x20000000) + target + bytes([2, 1]) + mac)


def reaction(mode, frame):
    kind = frame[12:14]
    if mode == "return":
        return [frame] if frame[0] & 1 else []
    if kind == b"\x08\x06" and frame[20:22] == b"\0\1" and frame[28:32] == b"\0" * 4:
        target, asker, nobody = frame[38:42], frame[22:28], b"\0" * 4
        probe = arp(ALL, 1, nobody, b"\0" * 6, target)
        if mode in ("answer", "suppress"):
            mac = MAC if mode == "answer" else asker
            return [arp(asker, 2, target, asker, nobody, mac)] if is_wanted(socket.AF_INET, target) else []
        return [probe, arp(ALL, 1, target, b"\0" * 6, target)] if mode == "claim" else [probe]
    if kind == b"\x86\xdd" and frame[20] == 58 and frame[54] == 135 and not any(frame[22:38]):
        target = frame[62:78]
        if mode in ("answer", "suppress"):
            mac = MAC if mode == "answer" else frame[6:12]
            return [advertisement(target, mac)] if is_wanted(socket.AF_INET6, target) else []
        probe = solicitation(LOCAL if mode == "track-local" else b"\0" * 16, target)
        return [probe, advertisement(target)] if mode == "claim" else [probe]
    return []


def is_wanted(family, address):
    return len(sys.argv) == 2 or socket.inet_ntop(family, address) in sys.argv[2:]


wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
print("ready", flush=True)
while True:
    try:
        frame, (interface, _, packet_type, *_) = wire.recvfrom(2000)
        if packet_type != OUTGOING and frame[6:12] != MAC and interface != "lo":
            for answer in reaction(sys.argv[1], frame):
                wire.sendto(answer, (interface, ALL_PROTOCOLS))
    except OSError:
        # The interface is gone, or not up.
        pass
