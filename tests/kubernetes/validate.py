"""Validates documents against the schemas of the Kubernetes API, strictly: an unknown field is a fault.

stdin: JSON, a list of {"version", "document"}; stdout: JSON, a list with the fault of each, null for none.
With --versions: the versions whose schemas are installed.
"""
import json
import sys

import kubernetes_validate
from kubernetes_validate import utils


def fault(case):
    try:
        utils.validate(case["document"], case["version"], strict=True)
    except kubernetes_validate.ValidationError as error:
        path = ".".join(str(part) for part in error.path)
        return f"{path}: {error.message}"
    return None


if sys.argv[1:] == ["--versions"]:
    print(json.dumps([utils.major_minor(version) for version in utils.all_versions()]))
else:
    print(json.dumps([fault(case) for case in json.load(sys.stdin)]))
