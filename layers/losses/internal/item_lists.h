// What losses of ranked lists are computed from.
#pragma once

#include <string>

#include <keel/framework/tensor.h>

namespace keel {

// Lists of items, one in each row.
struct ItemLists {
  Tensor labels, scores;  // [batch, items], of one dtype
  Tensor valid;           // bool, of that shape
};

// y_true and y_pred are [batch, items], or [items] for one list. An item is valid if its label is
// not negative and neither tensor's mask leaves it out. TypeError, naming `caller`, unless y_pred
// is floating; ValueError for other ranks, and for shapes that differ.
ItemLists item_lists(const std::string& caller, const Tensor& y_true, const Tensor& y_pred);

// The values of each list beside and above a matrix of its pairs, to be compared by broadcasting:
// [batch, items] -> [batch, items, 1] and [batch, 1, items].
struct PairSides {
  Tensor first, second;
};
PairSides pair_sides(const Tensor& values);

}  // namespace keel
