#!/usr/bin/python
# SPDX-License-Identifier: MIT OR Apache-2.0

DOCUMENTATION = r"""
---
module: netfix_upgrade
short_description: Upgrade a NIC driver in a maintenance window that restores every pod
version_added: 0.9.0
description:
  - Runs C(netfix upgrade) on a node. It checks the node, takes a snapshot, pauses kubelet, runs the command that reloads the
    driver, restores the network of every pod, and checks that no pod was rebuilt.
  - The window runs as a systemd unit on the node, so it does not need the ssh connection, which is lost with the NIC. An action
    plugin on the control machine starts the window, then connects again until the window has ended.
  - In check mode it runs C(netfix upgrade --dry-run), which changes nothing.
author:
  - netfix maintainers (@netfix)
options:
  cmd:
    description: The command that upgrades the driver, for C(sh -c).
    type: str
  argv:
    description: The same as a list of program and arguments, which no shell reads.
    type: list
    elements: str
  driver_version:
    description:
      - Drivers, each with the version in which it is to run. Write each version in quotes.
      - If all of them run in these versions, the upgrade is already done, and nothing is changed. After the command each of them
        must run in its version.
    type: dict
  unless:
    description: A command for C(sh -c) on the node. If it succeeds, the upgrade is already done, and nothing is changed.
    type: str
  rollback:
    description: A command for C(sh -c) that brings the former driver back, if the NIC or more than O(max_lost) pods are lost.
    type: str
  max_lost:
    description: Accept this many lost pods without a rollback.
    type: int
  before:
    description: A command for C(sh -c) on the node, before kubelet is paused. If it fails, the window is refused.
    type: str
  after:
    description: A command for C(sh -c) on the node, when kubelet runs again. Its failure is a warning.
    type: str
  device:
    description: The NICs whose driver the command reloads. By default those under the pods.
    type: list
    elements: str
  unit:
    description: The unit of kubelet. By default netfix finds it.
    type: str
  pause:
    description: Whether kubelet is paused. A kubelet that runs may rebuild pods while they have no network.
    type: bool
    default: true
  deadline:
    description: systemd starts kubelet again after this time, even if netfix is gone, such as C(10m).
    type: str
  command_timeout:
    description:
      - End the command and the rollback after this time, such as C(5m), with all that they have started.
      - By default the command may run until the restore has to begin, so that it ends before O(deadline).
    type: str
  hold:
    description:
      - Keep kubelet paused while a pod is not restored, until C(netfix resume) on the node or O(deadline).
      - Choose O(timeout) longer than O(deadline) then.
    type: bool
    default: false
  wait:
    description: How long the window waits for the NIC after the command, such as C(60s).
    type: str
  settle:
    description: How long the window watches for rebuilt pods after the start of kubelet, such as C(30s).
    type: str
  repair:
    description: Restore pods that have lost their network already too. Without this they refuse the window.
    type: bool
    default: false
  force:
    description: Continue even if some pods cannot be restored, are lost already, or are at risk and not selected.
    type: bool
    default: false
  extra_args:
    description: Further options of C(netfix upgrade), or with O(phase=health) of C(netfix check).
    type: list
    elements: str
    default: []
  executable:
    description: The program on the node.
    type: str
    default: netfix
  state_dir:
    description: The state directory on the node, if it is not C(/var/lib/netfix).
    type: path
  phase:
    description:
      - V(whole) starts the window and waits for its end.
      - V(check) changes nothing and finds out whether the window would begin, as check mode does.
      - V(start) starts the window and returns its id.
      - V(wait) waits for the end of O(window).
      - V(health) runs C(netfix check), and fails if a pod has lost its network or could not be restored. With O(force) only a loss counts.
    type: str
    choices: [whole, check, start, wait, health]
    default: whole
  window:
    description: The window for O(phase=wait). By default the open one, or else the newest.
    type: str
  timeout:
    description:
      - How many seconds to wait for the end of the window, including the time without a connection.
      - Choose it longer than the command, O(wait), O(settle) and one minute together.
    type: int
    default: 1200
  poll:
    description: How many seconds one attempt on one connection waits for the end of the window.
    type: int
    default: 20
  delay:
    description: Seconds between two attempts to connect.
    type: int
    default: 3
  busy_timeout:
    description: How many seconds to retry while another netfix works on the node (C(lock-held), C(window-open)).
    type: int
    default: 300
  report_dir:
    description: A directory on the control machine. The document of the node is written there, for C(netfix report --merge).
    type: path
attributes:
  check_mode:
    description: Runs C(netfix upgrade --dry-run). It fails if the window would be refused.
    support: full
  diff_mode:
    description: Shows the NICs with their drivers before and after the window; in check mode, the phases and the pods at risk.
    support: full
notes:
  - Needs root on the node, for example by C(become).
  - The task fails if the exit code is not 0.
"""

EXAMPLES = r"""
- name: Upgrade the driver, and keep every pod
  netfix.node.netfix_upgrade:
    argv: [sh, /root/i40e_upgrade.sh]
    driver_version:
      i40e: "2.28.7"

- name: Bring the former driver back if a pod is lost
  netfix.node.netfix_upgrade:
    cmd: dnf -y upgrade kmod-i40e && modprobe -r irdma i40e && modprobe i40e
    rollback: dnf -y downgrade kmod-i40e && modprobe -r irdma i40e && modprobe i40e
    unless: rpm -q kmod-i40e-2.28.7
    report_dir: reports
"""

RETURN = r"""
exit_code:
  description: >-
    The exit code of netfix: 0 COMMAND succeeded, all pods are back, none was rebuilt; already done; with --detach: the window is open; 1 COMMAND failed, was interrupted or rolled back, or a driver has another version; all pods are back; 2 wrong usage; 4 refused; nothing was changed; 5 work is left, whatever COMMAND returned: a pod or the host is not restored or does not reach a gateway or target, a pod was rebuilt or restarted or went, a rule names a former ifindex, a pod that was not selected has lost something, or kubelet was not paused all the time or does not run; 255 if the node could not be reached, 124 if the window is still open.
  returned: always
  type: int
  sample: 0
verdict:
  description: The verdict on the window, such as C(well), C(restored) or C(pods-affected). C(nothing-lost) is a warning too.
  returned: when a window was opened and has ended
  type: str
  sample: well
window:
  description: The id of the window.
  returned: when a window was opened
  type: str
  sample: 20261121T031500Z
already_done:
  description: Whether O(driver_version) and O(unless) made a window unnecessary.
  returned: always
  type: bool
pods:
  description: The numbers of pods, such as C(total), C(back), C(not_shown), C(not_back), C(rebuilt) and C(gone).
  returned: when the window has ended
  type: dict
  sample: {total: 40, back: 40, not_shown: 0, not_back: 0, rebuilt: 0, gone: 0, unknown: 0}
worst_outage_ms:
  description: The longest outage of a pod.
  returned: when the window has ended
  type: int
problems:
  description: Every problem with code, severity, pod, object and message.
  returned: always
  type: list
  elements: dict
at_risk:
  description: The pods that the window would cut off.
  returned: with O(phase=check) and in check mode
  type: list
  elements: str
latest_window:
  description: The newest window on the node that has ended.
  returned: with O(phase=check) and in check mode
  type: str
report_file:
  description: The file on the control machine.
  returned: with O(report_dir)
  type: str
document:
  description: The document of netfix.
  returned: with O(phase=start) and O(phase=wait)
  type: dict
"""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.netfix.node.plugins.module_utils.documents import ended, facts, health_message, pod_names

# Options that are passed on as they are.
PASSED_ON = ("rollback", "max_lost", "before", "after", "unit", "deadline", "command_timeout", "wait", "settle", "unless")

# The options of netfix that have another name than their parameter.
RENAMED = {"wait": "--nic-wait", "settle": "--watch", "hold": "--keep-paused"}

TEXTS = ("cmd", "unless", "rollback", "before", "after", "unit", "deadline", "command_timeout", "wait", "settle", "window")

ARGUMENTS = dict(
    {name: dict(type="str") for name in TEXTS},
    argv=dict(type="list", elements="str"),
    driver_version=dict(type="dict"),
    max_lost=dict(type="int"),
    device=dict(type="list", elements="str"),
    pause=dict(type="bool", default=True),
    hold=dict(type="bool", default=False),
    repair=dict(type="bool", default=False),
    force=dict(type="bool", default=False),
    extra_args=dict(type="list", elements="str", default=[]),
    executable=dict(type="str", default="netfix"),
    state_dir=dict(type="path"),
    phase=dict(type="str", choices=["whole", "check", "start", "wait", "health"], default="whole"),
    timeout=dict(type="int", default=1200),
    poll=dict(type="int", default=20),
    delay=dict(type="int", default=3),
    busy_timeout=dict(type="int", default=300),
    report_dir=dict(type="path"),
)


class Failed(Exception):
    """netfix printed no document."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


def netfix(module, words):
    """Runs netfix; returns its exit code and its document."""
    environment = {"NO_COLOR": "1"}
    if module.params["state_dir"]:
        environment["NETFIX_STATE_DIR"] = module.params["state_dir"]
    command = [module.params["executable"]] + words
    try:
        code, out, err = module.run_command(command, environ_update=environment, handle_exceptions=False)
    except (OSError, ValueError) as error:
        raise Failed("cannot run %s: %s" % (command[0], error))
    try:
        return code, json.loads(out)
    except ValueError:
        raise Failed("%s: exit code %s: %s" % (" ".join(command), code, (err or out).strip()), code)


def versions(module):
    """DRIVER=VERSION of each driver. YAML reads 2.10 without quotes as the number 2.1."""
    for driver, version in sorted((module.params["driver_version"] or {}).items()):
        if not isinstance(version, str):
            raise Failed('driver_version: write the version of %s in quotes, such as "%s"' % (driver, version))
        yield "%s=%s" % (driver, version)


def devices(module):
    """The NICs whose driver the command reloads."""
    return [word for device in module.params["device"] or [] for word in ("--nic", device)]


def option(name):
    """The option of netfix for a parameter."""
    return RENAMED.get(name, "--" + name.replace("_", "-"))


def upgrade_words(module, first):
    """The command line of `netfix upgrade`."""
    params = module.params
    words = ["upgrade", "-o", "json"] + first
    for name in PASSED_ON:
        if params[name] is not None:
            words += [option(name), str(params[name])]
    for version in versions(module):
        words += ["--driver-version", version]
    words += devices(module)
    if not params["pause"]:
        words.append("--no-pause")
    words += [option(name) for name in ("hold", "repair", "force") if params[name]]
    command = params["argv"] or ["sh", "-c", params["cmd"]]
    return words + params["extra_args"] + ["--"] + command


def latest_window(module):
    """The id of the newest window that has ended. One that is open is resumed under its id."""
    windows = netfix(module, ["report", "--list", "-o", "json"])[1].get("windows") or []
    ended = [one["id"] for one in windows if (one["window"] or {}).get("ended") is not None]
    return ended[-1] if ended else None


def check(module):
    """Would the window begin?"""
    code, document = netfix(module, upgrade_words(module, ["--dry-run", "--detach"]))
    result = facts(code, document)
    result.update(
        changed=code == 0 and not result["already_done"] and module.params["phase"] != "check",
        at_risk=pod_names(document),
        latest_window=latest_window(module),
    )
    if result["changed"]:
        lines = (document["node"].get("steps") or []) + ["pod %s" % name for name in result["at_risk"]]
        result["diff"] = dict(prepared="".join(line + "\n" for line in lines))
    return result, document


def start(module):
    """Starts the window. One that has ended at once has its report already."""
    code, document = netfix(module, upgrade_words(module, ["--yes", "--detach"]))
    result = facts(code, document)
    result["changed"] = result["window"] is not None and result["verdict"] != "refused"
    return ended(result, document)


def wait(module):
    """Waits for the end of the window, for one attempt."""
    words = ["wait", "-o", "json", "--timeout", "%ss" % module.params["poll"]]
    code, document = netfix(module, words + ([module.params["window"]] if module.params["window"] else []))
    return ended(facts(code, document), document)


def health(module):
    """Is every pod well, and could it be restored? What O(force) accepted before the window is no news after it."""
    code, document = netfix(module, ["check", "-o", "json"] + devices(module) + module.params["extra_args"])
    check = document.get("check") or {}
    lost = sum((check.get("lost") or {}).values())
    accepted = module.params["force"] and code == 2 and not lost
    return dict(facts(code, document), failed=code not in (0, 1) and not accepted, msg=health_message(check, lost, document)), document


def main():
    """Runs one phase. The action plugin combines them to O(phase=whole)."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
        mutually_exclusive=[("cmd", "argv")],
        required_if=[("phase", phase, ("cmd", "argv"), True) for phase in ("whole", "check", "start")],
    )
    phase = module.params["phase"]
    try:
        if phase in ("wait", "health") and module.check_mode:
            module.exit_json(skipped=True, exit_code=0, msg="check mode: no window was started")
        if phase == "check" or module.check_mode:
            result, document = check(module)
        elif phase == "start":
            result, document = start(module)
        elif phase == "wait":
            result, document = wait(module)
        elif phase == "health":
            result, document = health(module)
        else:
            raise Failed("phase whole needs the action plugin of the collection: use the name netfix.node.netfix_upgrade")
    except Failed as error:
        module.fail_json(msg=str(error), exit_code=error.code, problems=[], already_done=False)
    module.exit_json(document=document, **result)


if __name__ == "__main__":
    main()
