"""How Sphinx makes the site of the pages that `sitemaking` lays out; `make docs` runs both."""

from dpbandits import __version__

project = "dpbandits"
release = version = __version__
html_title = f"dpbandits {__version__}"

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4  # so that [links](page.md#a-heading) are checked, as GitHub resolves them
smartquotes = False  # names and sentences are shown as they are typed

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = html_show_copyright = False
html_show_search_summary = False  # read from other pages, which a browser refuses for files on a disk
html_theme_options = {
    "source_repository": "https://github.com/dpbandits/dpbandits",
    "light_css_variables": {"color-brand-primary": "#00629b", "color-brand-content": "#00629b"},
    "dark_css_variables": {"color-brand-primary": "#6fb9e6", "color-brand-content": "#6fb9e6"},
}
pygments_style = "friendly"
pygments_dark_style = "monokai"

python_display_short_literal_types = True
maximum_signature_line_length = 80
toc_object_entries = True
toc_object_entries_show_parents = "hide"
add_module_names = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
