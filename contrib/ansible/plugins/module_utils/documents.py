# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the documents of netfix (`-o json`) mean for a task."""


def problem_text(problem):
    """A problem as one line."""
    about = [word for word in (problem.get("pod"), problem.get("object")) if word]
    return "%s: %s" % (" ".join([problem["code"]] + about), problem["message"])


def message(code, document):
    """The result as one sentence."""
    computed = (document.get("report") or {}).get("computed") or {}
    texts = [problem_text(one) for one in document["problems"] if one["severity"] == "error"]
    if code == 0 and not computed:
        if already_done(document):
            return "already done: no window is needed"
        return document.get("verdict") or "the window is open"
    if computed.get("sentence") and code != 124:
        return computed["sentence"]
    first = texts[0] if texts else "exit code %s" % code
    more = " (and %s more)" % (len(texts) - 1) if len(texts) > 1 else ""
    if document.get("verdict"):
        return "%s: %s%s" % (document["verdict"], first, more)
    return "%s%s%s" % ("refused, nothing was changed: " if code == 4 else "", first, more)


def health_message(check, lost, document):
    """The verdict of `netfix check` as one sentence."""
    status = check.get("status") or "UNKNOWN"
    errors = [problem_text(one) for one in document["problems"] if one["severity"] == "error"]
    words = ["%s pod%s lost the network" % (lost, " has" if lost == 1 else "s have")] if lost else []
    return "; ".join([status] + words + errors[:1])


def already_done(document):
    """Whether no window is needed."""
    return any(one["code"] == "already-done" for one in document["problems"])


def facts(code, document):
    """What is returned of a document."""
    report = document.get("report") or {}
    computed = report.get("computed") or {}
    result = dict(
        exit_code=code,
        failed=code != 0,
        changed=False,
        msg=message(code, document),
        problems=document["problems"],
        already_done=already_done(document),
        window=report.get("id") or (document.get("window") or {}).get("id"),
        verdict=None if computed.get("open") else computed.get("verdict"),
    )
    if result["verdict"] == "nothing-lost":
        result["warnings"] = ["the command reloaded no driver"]
    if computed and not computed.get("open"):
        result.update(pods=computed.get("pods"), worst_outage_ms=(computed.get("outages") or {}).get("worst_ms"))
    return result


def nic_lines(report, key):
    """The NICs of a report, one a line."""
    lines = []
    for nic in report.get("nics") or []:
        seen = nic.get(key)
        name = (nic.get("before") or nic.get("after") or {}).get("name")
        known = [seen.get(one) for one in ("driver", "version", "firmware")] if seen else ["missing"]
        lines.append(" ".join(str(word) for word in [name] + known if word) + "\n")
    return "".join(lines)


def pod_names(document):
    """The names of the pods in a document."""
    return ["/".join(filter(None, (pod["namespace"], pod["name"] or pod["id"]))) for pod in document["pods"]]


def ended(result, document):
    """Adds the NICs before and after."""
    if result["verdict"]:
        report = document["report"]
        result["diff"] = dict(
            before=nic_lines(report, "before"),
            after=nic_lines(report, "after"),
            before_header="NICs before the window",
            after_header="NICs after the window",
        )
    return result, document
