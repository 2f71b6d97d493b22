# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a whole window from the control machine, over connections that are lost with the NIC."""

import json
import os
import tempfile
import time

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.validation import check_type_int
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

DOCUMENTATION = r"""
name: netfix_upgrade
short_description: See the module of the same name
description: See the module of the same name.
"""

display = Display()

MODULE = "netfix.node.netfix_upgrade"
# The NIC can disappear without an end of the TCP connection: ssh notices that itself, after 15 seconds.
KEEPALIVE = "-o ServerAliveInterval=5 -o ServerAliveCountMax=3"
# Problems of a node on which another netfix works.
BUSY = {"lock-held", "window-open"}


def is_busy(result):
    """Whether another netfix works on the node."""
    codes = {one["code"] for one in result.get("problems") or [] if one["severity"] == "error"}
    return result.get("exit_code") == 4 and bool(codes & BUSY)


class ActionModule(ActionBase):
    """The start of a window, then one connection after the other until its end."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        del tmp
        self._task_vars = task_vars or {}
        self._options = dict(self._task.args)
        phase = self._options.get("phase", "whole")
        try:
            limits = self._limits()
        except (TypeError, ValueError) as error:
            return dict(result, failed=True, msg=str(error))
        if self._task.check_mode or phase == "check":
            # In check mode the module knows itself what to do.
            found = self._attempts(phase, limits["busy_timeout"], limits["delay"])
        elif phase == "start":
            self._keep_alive()
            found = self._attempts("start", limits["busy_timeout"], limits["delay"])
        elif phase == "health":
            found = self._health(limits)
        elif phase == "wait":
            self._keep_alive()
            found = self._until_end(self._options.get("window"), limits)
        else:
            found = self._whole(limits)
        self._report(found, phase)
        return dict(result, **found)

    def _limits(self):
        """The numbers that this plugin needs; the module has the same defaults."""
        defaults = dict(timeout=1200, poll=20, delay=3, busy_timeout=300)
        return {name: check_type_int(self._options.get(name, number)) for name, number in defaults.items()}

    def _module(self, phase, **options):
        """One call of the module on the node, or the reason why there is no answer, with exit code 255."""
        arguments = dict(self._options, phase=phase, **options)
        try:
            result = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=self._task_vars)
        except AnsibleConnectionFailure as error:
            return self._lost(str(error))
        if result.get("unreachable"):
            return self._lost(result.get("msg"))
        if "module_stdout" in result and phase != "check":
            # The connection was lost before the module had printed its whole answer.
            return self._lost(result.get("module_stderr") or result.get("msg"))
        return result

    @staticmethod
    def _lost(reason):
        return dict(exit_code=255, failed=True, changed=False, problems=[], already_done=False, msg="%s" % (reason or "no answer"))

    def _attempts(self, phase, seconds, delay):
        """One phase, again while another netfix works on the node."""
        end = time.monotonic() + seconds
        while True:
            result = self._module(phase)
            if not is_busy(result) or time.monotonic() >= end:
                return result
            display.vv("%s: %s; retrying" % (self._host(), result["msg"]))
            time.sleep(delay)

    def _whole(self, limits):
        """The window from its check to its end."""
        self._keep_alive()
        checked = self._attempts("check", limits["busy_timeout"], limits["delay"])
        if checked.get("failed") or checked.get("already_done"):
            checked.pop("diff", None)
            return dict(checked, changed=False, msg=self._unstarted(checked))
        started = self._start(checked.get("latest_window"), limits)
        if started.get("verdict") or started.get("already_done"):
            return started
        if started.get("failed") and started.get("exit_code") != 124:
            return dict(started, msg=self._unstarted(started))
        self._reset()
        found = self._until_end(started.get("window"), limits)
        return dict(found, changed=True, window=started.get("window"))

    def _start(self, latest, limits):
        """Starts the window. If the answer is lost with the NIC, the newest window of the node shows whether it was opened."""
        end = time.monotonic() + limits["timeout"]
        result = self._attempts("start", limits["busy_timeout"], limits["delay"])
        while result.get("exit_code") == 255 and time.monotonic() < end:
            self._pause(limits["delay"], result)
            newest = self._module("wait", window=None, poll=0)
            if newest.get("exit_code") == 255:
                result = newest
                continue
            if newest.get("window") and newest["window"] != latest:
                return dict(newest, changed=True)
            result = self._module("start")
            if is_busy(result):
                # The unit of the lost start has not opened its window yet.
                result = dict(self._lost(result["msg"]), problems=result["problems"])
        return result

    def _until_end(self, window, limits):
        """Waits for the end of the window, one connection after the other."""
        end = time.monotonic() + limits["timeout"]
        while True:
            left = max(0, int(end - time.monotonic()))
            result = self._module("wait", window=window, poll=min(limits["poll"], left))
            if result.get("exit_code") not in (124, 255):
                return result
            if time.monotonic() >= end:
                return dict(result, msg=self._overdue(result, window, limits["timeout"]))
            if result["exit_code"] == 255:
                self._pause(limits["delay"], result)

    def _health(self, limits):
        """The check after a window, also over a connection that comes back late."""
        end = time.monotonic() + limits["busy_timeout"]
        while True:
            result = self._module("health")
            if result.get("exit_code") != 255 or time.monotonic() >= end:
                return result
            self._pause(limits["delay"], result)

    def _pause(self, delay, result):
        """Before the next connection, which must not use the socket of the last one."""
        display.vv("%s: no connection (%s); retrying" % (self._host(), " ".join(result["msg"].split())))
        self._reset()
        time.sleep(delay)

    def _overdue(self, result, window, seconds):
        name = window or "the newest window"
        if result["exit_code"] == 255:
            return "no connection %s s after the start of %s: %s. The deadline of the window starts kubelet" % (seconds, name, result["msg"])
        return "%s is still open after %s s. Run `netfix status` on the node" % (name, seconds)

    @staticmethod
    def _unstarted(checked):
        if checked.get("exit_code") == 255:
            return "no answer, so no window is known: %s" % checked["msg"]
        return checked.get("msg")

    def _keep_alive(self):
        """A new connection that notices a lost NIC."""
        if getattr(self._connection, "transport", "") != "ssh":
            return
        present = self._connection.get_option("ssh_extra_args") or ""
        if KEEPALIVE not in present:
            # ssh uses the first value of an option, so the user's own comes first.
            self._connection.set_option("ssh_extra_args", ("%s %s" % (present, KEEPALIVE)).strip())
            self._reset()

    def _reset(self):
        """Closes the connection that is shared by many commands: it can outlive the NIC."""
        try:
            self._connection.reset()
        except (AnsibleError, AttributeError) as error:
            display.vvv("%s: the connection was not reset: %s" % (self._host(), error))

    def _host(self):
        return self._task_vars.get("inventory_hostname", "node")

    def _report(self, found, phase):
        """Writes the document of a window to the control machine; the result is short without it."""
        folder = self._options.get("report_dir")
        if not folder:
            if phase not in ("start", "wait"):
                found.pop("document", None)
            return
        document = found.pop("document", None)
        if self._task.check_mode or phase in ("check", "health") or found.get("already_done"):
            return
        if document is None:
            document = self._without_answer(found)
        # A document without a report may lack the name.
        document["node"]["hostname"] = document["node"]["hostname"] or self._host()
        folder = os.path.abspath(os.path.expanduser(folder))
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "%s.json" % os.path.basename(self._host()))
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".", delete=False) as file:
            json.dump(document, file)
            file.write("\n")
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
        found["report_file"] = path

    def _without_answer(self, found):
        """A document without a report: the node is in the report of the fleet, and never counts as well."""
        code = found.get("exit_code")
        return dict(
            schema="netfix/v1",
            command="wait",
            exit=255 if code is None else code,
            node=dict(hostname=self._host(), created=None),
            pods=[],
            problems=[],
        )
