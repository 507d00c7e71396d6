// Compatibility: where sources of 2023 find the registration of device functions.
#include <diopi/diopi_register.h>
