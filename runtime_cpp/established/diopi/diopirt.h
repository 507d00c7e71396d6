// Compatibility: the established diopirt.h brings <iostream>, which sources written for it use without including it.
#pragma GCC system_header

#include_next <diopi/diopirt.h>  // which has a guard

#if defined(__cplusplus)
#include <iostream>
#endif
