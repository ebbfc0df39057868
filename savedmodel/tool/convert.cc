// keel convert: converts a model or its weights to another format.
#include <iostream>

#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/model_file.h>

namespace keel::tool {
namespace {

constexpr const char* kCaller = "keel convert";
constexpr int kIncomplete = 1;  // OUT lacks a part of IN

bool is_weights_file(const std::string& path) { return path.ends_with(".weights.h5"); }

void check_suffix(const std::string& out) {
  if (!out.ends_with(".keras") && !out.ends_with(".h5") && !out.ends_with(".hdf5")) {
    throw ValueError(kCaller,
                     ": OUT must end in '.keras', '.h5', '.hdf5' or '.weights.h5', received '", out,
                     "'");
  }
}

// Returns the model of IN, or the model of --model with the weights of IN.
LoadedModel model_of(const Arguments& arguments) {
  const std::string& in = arguments.operand(0);
  const std::optional<std::string> frame = arguments.value("model");
  const FileKind kind = kind_of_file(in);
  if (kind == FileKind::kCheckpoint) {
    throw ValueError(kCaller, ": ", in,
                     " is a checkpoint, which only the program that wrote it can restore");
  }
  if (!frame) {
    if (arguments.has("by_name")) {
      throw ValueError(kCaller, ": --by_name is for weights; pass the model with --model");
    }
    if (!has_model(kind)) {
      throw ValueError(kCaller, ": ", in, " contains only weights; pass the model with --model");
    }
    return load_whole_model(kCaller, in);
  }
  LoadedModel loaded = load_whole_model(kCaller, *frame);
  load_weights_into(kCaller, loaded.model, in, arguments.has("by_name"));
  return loaded;
}

int run(const Arguments& arguments) {
  const std::string &in = arguments.operand(0), &out = arguments.operand(1);
  check_suffix(out);
  const LoadedModel loaded = model_of(arguments);
  int status = 0;
  if (is_weights_file(out) || arguments.has("weights_only")) {
    if (arguments.has("table_dtype"))
      throw ValueError(kCaller, ": --table_dtype is only for whole models");
    save_weights(loaded.model, out);
  } else {
    if (!loaded.not_compiled.empty()) {
      status = kIncomplete;
      std::cerr << "keel convert: the training configuration was dropped: " << loaded.not_compiled
                << '\n';
    }
    save_model(loaded.model, out,
               {.include_optimizer = loaded.model->compiled(),
                .for_keras = arguments.has("for_keras"),
                .table_dtype = arguments.value("table_dtype").value_or("float32"),
                .signatures = read_signature_specs(arguments.value("model").value_or(in))});
  }
  std::cout << "wrote " << out << '\n';
  return status;
}

}  // namespace

Command convert_command() {
  return {
      .syntax =
          {.command = "convert",
           .operands = {"IN", "OUT"},
           .flags = {{"model", {"FILE"}, "model file for the weights in IN"},
                     {"by_name", {}, "match layers of the weights by name (.h5)"},
                     {"weights_only", {}, "write only weights to OUT, also if it is a .h5 file"},
                     {"for_keras", {}, "replace layers that Keras does not have"},
                     {"table_dtype", {"DTYPE"}, "float32 (default) or int8 (8-bit tables)"}}},
      .summary = "writes a model or weights in the format that the suffix of OUT selects",
      .details =
          "OUT is a model (.keras, .h5, .hdf5) or weights (.weights.h5). The optimizer state and\n"
          "the signatures of IN are preserved. If IN contains only weights, pass --model, a file\n"
          "with a model of the same layers. The exit status is 1 if OUT is written without the\n"
          "training configuration of IN because it cannot be used.",
      .run = run};
}

}  // namespace keel::tool
