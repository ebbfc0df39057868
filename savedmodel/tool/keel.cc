// keel: inspects, runs, converts, compares and draws model files.
#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <keel/savedmodel/c_api.h>
#include <keel/savedmodel/serving/serve.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/printable_output.h>

#ifdef KEEL_WITH_GRPC
#include <keel/savedmodel/serving/grpc/grpc_support.h>
#endif

namespace keel::tool {
namespace {

constexpr int kBadInput = 2;

int serve(const std::vector<std::string>& words) {
#ifdef KEEL_WITH_GRPC
  const serving::RpcSupport support = serving::grpc_support();
  const serving::RpcSupport* const rpc = &support;
#else
  const serving::RpcSupport* const rpc = nullptr;
#endif
  return serving::serve(words, rpc, {"/proc/self/exe", "serve"});
}

int run(std::vector<const char*> words) {
  // The server has its own flags (savedmodel/serving/serve_options.h).
  if (words.size() > 1 && std::string(words[1]) == "serve") {
    return serve({words.begin() + 2, words.end()});
  }
  if (words.size() > 2 && std::string(words[1]) == "help" && std::string(words[2]) == "serve") {
    return serve({"--help"});
  }
  CommandLine keel(
      "keel", "keel: inspects, runs, serves, converts, compares and draws model files.",
      "`keel serve --model_base_path DIR` serves models over HTTP.\n"
      "`keel COMMAND --help` and `keel help COMMAND` describe a command.\n\n"
      "Files: models (.keras, .h5, .hdf5), weights (.weights.h5, .h5), checkpoints and folders of "
      "checkpoints.\n"
      "Exit status: 0 for success; 1 if predictions or files differ, or if a converted model "
      "lacks\n"
      "its training configuration; 2 for invalid arguments or files.");
  keel.set_version(std::string("keel ") + keel_version());
  add_convert(keel);
  add_diff(keel);
  add_inspect(keel);
  add_plot(keel);
  add_predict(keel);
  if (words.size() > 1 && std::string(words[1]) == "version") words[1] = "--version";
  if (words.size() > 1 && std::string(words[1]) == "help") {
    words.erase(words.begin() + 1);
    words.resize(std::min<size_t>(words.size(), 2));
    words.push_back("--help");
  }
  // The other commands print names of files as text; the predictions of `predict` are data.
  std::optional<PrintableOutput> output;
  if (words.size() < 2 || std::string(words[1]) != "predict") output.emplace();
  return keel.run(static_cast<int>(words.size()), words.data());
}

int fail(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  std::cout.flush();
  std::cerr << (message.starts_with("keel") ? "" : "keel: ") << printable(message) << '\n';
  return kBadInput;
}

}  // namespace
}  // namespace keel::tool

int main(int argc, char** argv) {
  try {
    const int status = keel::tool::run({argv, argv + argc});
    if (!std::cout.flush()) return keel::tool::fail("standard output cannot be written");
    return status;
  } catch (const std::bad_alloc&) {
    return keel::tool::fail("out of memory");
  } catch (const std::exception& error) {
    return keel::tool::fail(error.what());
  }
}
