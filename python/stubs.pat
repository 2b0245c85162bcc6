# Signatures of what has none in its own docstring: operators are type slots, which Python knows only by name.
^baregrad\._core\.Tensor\.__(r?)(add|sub|mul|truediv|floordiv|mod|and|or|xor|lshift|rshift)__$:
    def __\1\2__(self, value: Tensor | bool | int | float, /) -> Tensor: ...

^baregrad\._core\.Tensor\.__(r?)matmul__$:
    def __\1matmul__(self, value: Tensor, /) -> Tensor: ...

^baregrad\._core\.Tensor\.__(r?)pow__$:
    def __\1pow__(self, value: Tensor | bool | int | float, mod: None = None, /) -> Tensor: ...

^baregrad\._core\.Tensor\.__ipow__$:
    def __ipow__(self, value: Tensor | bool | int | float, /) -> Tensor: ...  # type: ignore[misc]

^baregrad\._core\.Tensor\.__i(add|sub|mul|truediv|floordiv|mod|and|or|xor|lshift|rshift)__$:
    def __i\1__(self, value: Tensor | bool | int | float, /) -> Tensor: ...

^baregrad\._core\.Tensor\.__imatmul__$:
    def __imatmul__(self, value: Tensor, /) -> Tensor: ...

^baregrad\._core\.Tensor\.__(lt|le|gt|ge)__$:
    def __\1__(self, value: Tensor | bool | int | float, /) -> Tensor: ...

# Elementwise, as everywhere in this field; object's own answer is a bool.
^baregrad\._core\.Tensor\.__(eq|ne)__$:
    def __\1__(self, value: Tensor | bool | int | float, /) -> Tensor: ...  # type: ignore[override]

^baregrad\._core\.Tensor\.__(neg|pos|abs|invert)__$:
    def __\1__(self, /) -> Tensor: ...

^baregrad\._core\.Tensor\.__(bool|int|float)__$:
    def __\1__(self, /) -> \1: ...

^baregrad\._core\.Tensor\.__(index|len|hash)__$:
    def __\1__(self, /) -> int: ...

^baregrad\._core\.__suffix__$:
    __version__: str

^baregrad\._core\.Tensor\.__getitem__$:
    def __getitem__(self, key: Any, /) -> Tensor: ...

^baregrad\._core\.Tensor\.__setitem__$:
    def __setitem__(self, key: Any, value: Any, /) -> None: ...

^baregrad\._core\.Tensor\.__delitem__$:
    def __delitem__(self, key: Any, /) -> None: ...

^baregrad\._core\.Tensor\.__iter__$:
    def __iter__(self, /) -> Iterator[Tensor]: ...

^baregrad\._core\.Tensor\.__contains__$:
    def __contains__(self, key: Any, /) -> bool: ...

# What a module takes and gives is said by its forward.
\.__call__$:
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

\.__setattr__$:
    def __setattr__(self, name: str, value: Any, /) -> None: ...

\.__delattr__$:
    def __delattr__(self, name: str, /) -> None: ...

\.__repr__$:
    def __repr__(self) -> str: ...

\.__reduce_ex__$:
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]: ...

^baregrad\._core\.nn\.Module\.__setstate__$:
    def __setstate__(self, state: dict[str, Any], /) -> None: ...
