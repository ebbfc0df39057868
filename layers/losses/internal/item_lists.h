// The inputs that losses of ranked lists share.
#pragma once

#include <string>

#include <keel/framework/tensor.h>

namespace keel {

// A batch of lists of items, with one list per row.
struct ItemLists {
  Tensor labels, scores;  // [batch, items], of the same dtype
  Tensor valid;           // bool, of the same shape
};

// Converts labels and predictions to lists. y_true and y_pred are [batch, items], or [items] for
// one list. An item is valid if its label is not negative and neither tensor's mask excludes it.
// Throws TypeError, naming `caller`, unless y_pred is floating point, and ValueError if the ranks
// differ from the above or the shapes differ.
ItemLists item_lists(const std::string& caller, const Tensor& y_true, const Tensor& y_pred);

// The values of the first and second items of all pairs of a list, shaped for comparison by
// broadcasting: [batch, items] -> [batch, items, 1] and [batch, 1, items].
struct PairSides {
  Tensor first, second;
};
// Returns both sides of the pairs of `values`.
PairSides pair_sides(const Tensor& values);

}  // namespace keel
