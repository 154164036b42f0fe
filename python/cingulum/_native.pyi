# The extension module is private; what it takes and gives is checked by the modules that call it.
from typing import Any

def __getattr__(name: str) -> Any: ...
