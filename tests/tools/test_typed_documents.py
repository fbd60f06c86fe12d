"""The programs of pages and examples are collected with their lines, and mypy's messages name their files."""

from __future__ import annotations

import pytest
from tools import documents, typed_documents

PAGE = """
```python
import gradwire as torch
x = torch.randn(3)
```

    ```python
    if True:
        print(x.relu())
    ```

```python no-run
import gradwire as torch
torch.connect("https://nowhere.example")
```

```python
from gradwire import nn
y: int = nn.Linear(2, 3).weight
```
"""


@pytest.fixture
def page(tmp_path):
    found = tmp_path / "some-page.md"
    found.write_text(PAGE)
    return found


def test_blocks_are_found_with_their_lines(page) -> None:
    found = documents.blocks(page, "python")
    assert [block.line for block in found] == [3, 8, 18]
    assert found[1].code == "if True:\n    print(x.relu())\n"
    assert documents.script(found[:2]).splitlines()[7:] == found[1].code.splitlines()


def test_a_block_that_imports_gradwire_begins_a_program(page) -> None:
    assert [[block.line for block in program] for program in documents.programs(page)] == [[3, 8], [18]]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("import torch", "import gradwire as torch"),
        ("    import torch", "    import gradwire as torch"),
        ("import torch.nn.functional as F", "import gradwire.nn.functional as F"),
        ("from torch import nn", "from gradwire import nn"),
        ("from torch.utils.data import Dataset", "from gradwire.utils.data import Dataset"),
        ("import torchvision", "import torchvision"),
        ("x = torch.ones(2)", "x = torch.ones(2)"),
    ],
)
def test_a_program_for_pytorch_is_read_with_gradwire_in_its_place(line, wanted) -> None:
    assert typed_documents.with_gradwire(line) == wanted


def test_a_wrong_type_is_named_with_its_place_in_the_page(page, monkeypatch) -> None:
    monkeypatch.setattr(typed_documents, "pages", lambda: [page])
    status, messages = typed_documents.check(pair for pair in typed_documents.sources() if pair[1] == page)
    assert status == 1
    assert "some-page.md:19: error: Incompatible types in assignment" in messages
    assert messages.count("error:") == 1
