"""The pages and charts as they stand beside this module, in ``page/``: templates of Jinja, and what they embed."""

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


def page_text(name: str) -> str:
    """A file of the pages as it is."""
    return resources.files("colltune.report").joinpath("page", name).read_text(encoding="utf-8")


def page_template(name: str, **known: object) -> "Template":
    """A template, in which ``known`` are variables; what is put into it is escaped for HTML, but in metrics (.prom)."""
    from jinja2 import Environment  # late: few commands make a page

    return Environment(autoescape=".prom." not in name, trim_blocks=True, lstrip_blocks=True).from_string(
        page_text(name), known
    )
