// DynamicEmbeddings: the rows of a layer that has one table for unbounded ids, such as Embedding
// and EmbedReduce.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/framework/base/combiner.h>
#include <keel/framework/base/errors.h>
#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/embedding/tables/internal/id_rows.h>
#include <keel/layers/embedding/tables/internal/keyed_variable.h>

namespace keel {

// The arguments that DynamicEmbeddings are made from.
struct DynamicEmbeddingsOptions {
  std::string caller = {};  // the layer, for messages: "Embedding items"
  std::string name = {};    // of the table in messages
  DynamicVocabulary dynamic = {};
  int64_t dim = 0;
  Initializer initializer = {};
};

// Replicas may call the lookups concurrently. build() must be called first.
class DynamicEmbeddings {
 public:
  // Throws ValueError under the conditions of check(DynamicVocabulary) and
  // check_row_initializers().
  explicit DynamicEmbeddings(DynamicEmbeddingsOptions options);

  // Makes the table and its trainable variable, which is named "embeddings".
  Variable build();
  KeyType key() const { return options_.dynamic.key; }

  // Looks up dense ids of any shape: [ids..., dim]. If `present` is set, it becomes 1 for each id,
  // and 0 for ids that NotAdmitted::ignore() leaves out, as float32 with the shape of the ids.
  // Throws TypeError for ids of another type than the keys.
  Tensor look_up(const Tensor& ids, Tensor* present = nullptr) const;
  // Looks up and combines the ids of each row: [rows, dim].
  Tensor pool(const IdRows& rows, kernels::Combiner combiner) const;

  // Returns the handle of the table. Throws RuntimeError before build().
  DynamicTable table() const;
  // Returns the table in the form of DynamicTableOwner.
  std::vector<std::pair<std::string, DynamicTable>> tables() const;
  // Replaces the entry of the variable among the entries of the layer by those of the table.
  void replace_entry(std::vector<StateEntry>& entries) const;
  // Returns the notice for the end of fit(); none before build().
  std::vector<std::string> notices() const;

 private:
  const DynamicEmbeddingsOptions options_;
  std::shared_ptr<KeyedVariable> keyed_ = nullptr;
};

// Throws ValueError, naming `caller` and the option, if an option of a layer that needs rows with
// numbers is set beside `dynamic`.
void refuse_with_dynamic(const std::string& caller, const std::string& option, bool is_set);
// Throws ValueError, naming `caller`, if the layer's table has a vocabulary.
void refuse_dynamic_table(const std::string& caller, bool is_static);

// Returns the rows of a layer with `options.dynamic`. Throws ValueError, naming `caller`, for
// options that Embedding and EmbedReduce share and that exclude `dynamic`. `dtype` is the name of
// the layer's policy.
template <class Options>
std::shared_ptr<DynamicEmbeddings> dynamic_embeddings_of(const std::string& caller,
                                                         const std::string& name,
                                                         const Options& options,
                                                         const std::string& dtype,
                                                         bool has_float32_weights) {
  if (options.input_dim != 0) {
    throw ValueError(caller, ": input_dim and dynamic exclude each other; received input_dim ",
                     options.input_dim);
  }
  if (options.output_dim <= 0) {
    throw ValueError(caller, ": output_dim must be positive, received ", options.output_dim);
  }
  refuse_with_dynamic(caller, "embeddings_regularizer",
                      static_cast<bool>(options.embeddings_regularizer));
  refuse_with_dynamic(caller, "embeddings_constraint",
                      static_cast<bool>(options.embeddings_constraint));
  refuse_with_dynamic(caller, "dtype " + dtype, !has_float32_weights);
  return std::make_shared<DynamicEmbeddings>(
      DynamicEmbeddingsOptions{.caller = caller,
                               .name = name,
                               .dynamic = *options.dynamic,
                               .dim = options.output_dim,
                               .initializer = options.embeddings_initializer});
}

}  // namespace keel
