"""A report as JUnit XML, the form that CI servers read (Jenkins' junit-10.xsd): one suite for each function."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report.model import Report
from diopi_conformance.report.wording import reason, repro_command

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BROKEN = (Verdict.CRASH, Verdict.TIMEOUT, Verdict.UNSOUND)  # errors; what else is bad is a failure


def junit(report: Report) -> str:
    """The document. It holds a failure or an error exactly where the run's exit code is 1."""
    suites = [_suite(report, symbol, outcomes) for symbol, outcomes in _functions(report.outcomes)]
    if faults := report.faults():
        suites.append(_faults(faults))
    root = Element("testsuites", name=f"conformance of {report.vendor}", time=f"{report.seconds:.3f}")
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.extend(suites)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _functions(outcomes: Iterable[Outcome]) -> list[tuple[str, list[Outcome]]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda o: o.id):
        groups.setdefault(outcome.function, []).append(outcome)
    return list(groups.items())


def _suite(report: Report, symbol: str, outcomes: list[Outcome]) -> Element:
    return _counted(symbol, [_case(report, outcome) for outcome in outcomes], sum(o.seconds for o in outcomes))


def _counted(name: str, cases: list[Element], seconds: float) -> Element:
    suite = Element("testsuite", name=_text(name), tests=str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{seconds:.6f}")
    suite.extend(cases)
    return suite


def _case(report: Report, outcome: Outcome) -> Element:
    family = report.axes_of(outcome).family
    place = f"{report.vendor}.{family or 'conformance'}.{outcome.function}"
    case = Element("testcase", name=_text(outcome.id), classname=_text(place), time=f"{outcome.seconds:.6f}")
    text = _text(reason(outcome))
    if report.is_bad(outcome):
        tag = "error" if outcome.verdict in _BROKEN else "failure"
        case.append(Element(tag, type=outcome.verdict.value, message=text))
        out = Element("system-out")
        out.text = _text(f"{outcome.id}: {reason(outcome)}\n{repro_command(outcome.id, report)}\n")
        case.append(out)
    elif outcome.verdict is not Verdict.PASS:
        known = f"known: {outcome.known}: " if outcome.known else ""
        case.append(Element("skipped", type=outcome.verdict.value, message=_text(known) + text))
    return case


def _faults(faults: tuple[str, ...]) -> Element:
    """What no case can be blamed for, as cases of a suite of its own."""
    cases = []
    for fault in faults:
        case = Element("testcase", name=_text(fault), classname="conformance.run", time="0")
        case.append(Element("error", type="run", message=_text(fault)))
        cases.append(case)
    return _counted("the run", cases, 0.0)


def _text(text: str) -> str:
    """Without the characters that XML cannot hold at all."""
    return _NO_XML.sub("\ufffd", text)
