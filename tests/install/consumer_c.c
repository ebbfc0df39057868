// The same for the C interface, from a program in C.
#include <stdio.h>
#include <string.h>

#include <keel/savedmodel/c_api.h>

int main(void) {
  keel_model* model = NULL;
  printf("keel %s\n", keel_version());
  return keel_model_load("nowhere.keras", &model) == KEEL_IO_ERROR &&
                 strstr(keel_last_error(), "nowhere.keras") != NULL
             ? 0
             : 1;
}
