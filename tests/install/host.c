/* host LIBRARY...: loads libraries that contain Keel, all at once and then each one twice in turn.
 */
#include <dlfcn.h>
#include <stdio.h>

static int use(void* library, const char* path) {
  if (library == NULL) {
    fprintf(stderr, "%s: %s\n", path, dlerror());
    return 1;
  }
  float (*score)(float) = (float (*)(float))dlsym(library, "plugin_score");
  const char* (*version)(void) = (const char* (*)(void))dlsym(library, "keel_version");
  if (score != NULL) return score(4) == 5 ? 0 : 1;
  return version != NULL && version()[0] != '\0' ? 0 : 1;
}

int main(int argc, char** argv) {
  enum { kMost = 8 };
  void* libraries[kMost] = {NULL};
  int failed = argc > kMost;
  for (int i = 1; i < argc && !failed; ++i) {
    libraries[i] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    failed = use(libraries[i], argv[i]);
  }
  for (int i = 1; i < argc && !failed; ++i) dlclose(libraries[i]);
  for (int i = 2; i < 2 * argc && !failed; ++i) {
    const char* path = argv[i / 2];
    if (i / 2 == 0) continue;
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    failed = use(library, path);
    if (!failed) dlclose(library);
  }
  return failed;
}
