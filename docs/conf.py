"""The documentation as a site: `make docs`. Warnings are errors, nothing is loaded from elsewhere.

Sphinx, because readers know it from NumPy and scikit-learn and it is kept up; with MyST, for the
pages are Markdown that is read on code hosts as well. The reference is made of the docstrings.
"""

from importlib.metadata import version as installed

project = "atomcast"
release = version = installed("atomcast")
copyright = "the atomcast developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["numbers", "_build"]
nitpicky = False
html_theme = "pydata_sphinx_theme"
html_title = "atomcast"
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
#: Pages without pages below them need no list of these; tables get its room.
html_sidebars = {page: [] for page in ("index", "gallery", "howto", "reproduction")}
html_context = {"default_mode": "auto"}
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what is accepted, in words
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True


def setup(app):
    """Leave out what estimators have from scikit-learn, whose documentation has it."""

    def foreign(app, what, name, obj, skip, options):
        module = str(getattr(obj, "__module__", ""))
        return True if module.startswith("sklearn") or name.endswith("_request") else skip

    app.connect("autodoc-skip-member", foreign)
