// Examples of named features: the requests of classify and regress in all protocols.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// Their memory counts against the MemoryBudget.
using FeatureFloats = BudgetVector<float>;
using FeatureIntegers = IntegerList;
using FeatureStrings = BudgetVector<std::string>;
// The values of a feature; a list without values has no kind.
using FeatureValues = std::variant<std::monostate, FeatureFloats, FeatureIntegers, FeatureStrings>;
using ExampleValues = std::map<std::string, FeatureValues, std::less<>,
                               BudgetAllocator<std::pair<const std::string, FeatureValues>>>;

// Adds the features of `context` to each example that does not have them.
void add_context(const ExampleValues& context, std::vector<ExampleValues>& examples);

// The scores of examples, [rows, columns], in the memory of the thread's request.
struct ExampleScores {
  const float* values = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Runs a signature on examples, which it parses itself or whose features feed the inputs of the
// same name, and counts them. trace.api is one of classify and regress. Throws ServeError for
// features that do not suit the inputs and for outputs that are no scores.
ExampleScores run_examples(RequestTrace& trace, const ServedSignature& signature,
                           const std::vector<ExampleValues>& examples);

}  // namespace keel::serving
