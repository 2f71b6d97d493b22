# Attaches a program that lets everything pass to an interface: "tcx" (its ingress, with bpf(2)) or "xdp" (generic mode,
# with rtnetlink). With "agent" it runs on under that name, as the daemon to which the program belongs: it has a map of the
# program open, not the program.
import ctypes, os, platform, signal, socket, struct, sys

SYS_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
MAP_CREATE, PROG_LOAD, PROG_ATTACH = 0, 5, 8
ARRAY, PSEUDO_MAP_FD, PR_SET_NAME = 2, 1, 15
SCHED_CLS, XDP = 3, 6
TCX_INGRESS, PASS, XDP_PASS = 46, 0, 2
RTM_SETLINK, REQUEST_ACK, NLMSG_ERROR = 19, 5, 2
NESTED, IFLA_XDP, IFLA_XDP_FD, IFLA_XDP_FLAGS, XDP_FLAGS_SKB_MODE = 0x8000, 43, 1, 3, 2
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    result = libc.syscall(SYS_BPF, command, attributes, len(attributes))
    if result < 0:
        sys.exit(f"bpf {command}: {os.strerror(ctypes.get_errno())}")
    return result


def load(kind, verdict):
    # r1 = map; r0 = verdict; exit
    a_map = bpf(MAP_CREATE, struct.pack("=IIIII", ARRAY, 4, 4, 1, 0))
    code = struct.pack("=BBhiBBhi", 0x18, PSEUDO_MAP_FD << 4 | 1, 0, a_map, 0, 0, 0, 0)
    code = ctypes.create_string_buffer(code + struct.pack("=BBhiBBhi", 0xB7, 0, 0, verdict, 0x95, 0, 0, 0))
    license = ctypes.create_string_buffer(b"GPL")
    program = struct.pack("=IIQQ", kind, 4, ctypes.addressof(code), ctypes.addressof(license))
    return bpf(PROG_LOAD, program.ljust(48, b"\0"))


def set_link(index, kind, value):
    attribute = struct.pack("=HH", 4 + len(value), kind | NESTED) + value
    message = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, 0, 0) + attribute
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(message), RTM_SETLINK, REQUEST_ACK, 1, 0) + message)
        _, kind, _, _, _, error = struct.unpack_from("=IHHIIi", netlink.recv(4096))
    if kind != NLMSG_ERROR or error:
        sys.exit(f"RTM_SETLINK: {os.strerror(-error)}")


at = socket.if_nametoindex(sys.argv[2])
if sys.argv[1] == "tcx":
    program = load(SCHED_CLS, PASS)
    bpf(PROG_ATTACH, struct.pack("=IIIIIIQ", at, program, TCX_INGRESS, 0, 0, 0, 0))
else:
    program, mode = load(XDP, XDP_PASS), XDP_FLAGS_SKB_MODE
    set_link(at, IFLA_XDP, struct.pack("=HHiHHI", 8, IFLA_XDP_FD, program, 8, IFLA_XDP_FLAGS, mode))
if "agent" in sys.argv:
    os.close(program)
    libc.prctl(PR_SET_NAME, b"agent", 0, 0, 0)
    print("attached", flush=True)
    signal.pause()
