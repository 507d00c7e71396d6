// Marks the symbols that a vendor's library shows; everything else in it is hidden.
#pragma once

#ifndef DIOPI_EXPORT
#define DIOPI_EXPORT __attribute__((visibility("default")))
#endif
