"""What a run found, told in several ways."""

from diopi_conformance.report.model import Axes, Report, axes_of, read_report, write_report
from diopi_conformance.report.terminal import show, summary

__all__ = ["Axes", "Report", "axes_of", "read_report", "show", "summary", "write_report"]
