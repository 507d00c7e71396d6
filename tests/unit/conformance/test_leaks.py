"""Which of a sanitizer's words are about the vendor: Python never gives back all of its own memory."""

from diopi_conformance.process.leaks import without_python

HEAD = "\n====\n==7==ERROR: LeakSanitizer: detected memory leaks\n\n"
PYTHON = """\
Direct leak of 64 byte(s) in 1 object(s) allocated from:
    #0 0x7f in malloc asan_malloc_linux.cpp:69
    #1 0x55 in _PyObject_GC_Alloc Modules/gcmodule.c:2275

"""
VENDOR = """\
Indirect leak of 8 byte(s) in 1 object(s) allocated from:
    #0 0x7f in operator new(unsigned long) asan_new_delete.cpp:99
    #1 0x7f in impl::chip::diopiNeg(diopiContext*) neg.cpp:7
    #2 0x55 in _PyObject_Call Objects/call.c:305

"""


def test_leaks_of_python_are_left_out() -> None:
    assert without_python(HEAD + PYTHON) == "" and without_python("") == ""
    assert without_python(HEAD + PYTHON + VENDOR) == HEAD + VENDOR
    assert without_python(HEAD + VENDOR) == HEAD + VENDOR
