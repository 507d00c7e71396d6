// Marks the symbols that a vendor's library shows; everything else in it is hidden.
#ifndef DIOPI_ADAPTOR_EXPORT_H_
#define DIOPI_ADAPTOR_EXPORT_H_

#ifndef DIOPI_EXPORT
#define DIOPI_EXPORT __attribute__((visibility("default")))
#endif

#endif  // DIOPI_ADAPTOR_EXPORT_H_
