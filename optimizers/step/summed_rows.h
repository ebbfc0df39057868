// The rows of a sparse gradient, summed by id, and their update.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/distribute/embedding/internal/row_exchange.h>
#include <keel/framework/kernels/scratch.h>
#include <keel/optimizers/step/lazy_table.h>
#include <keel/optimizers/step/variable_update.h>

namespace keel {

// The gradients of the rows of one table.
template <class T>
struct SummedRows {
  kernels::ScratchVector<int64_t> ids;  // distinct
  kernels::ScratchVector<T> values;     // ids.size() rows
};

// Sums the rows of each id in the order of their positions.
template <class T>
SummedRows<T> sum_by_id(const IndexedSlices& slices, int64_t dim);

// Divides the values by the loss scale.
template <class T>
void unscale(const StepPlan& plan, std::span<T> values);

// Updates row ids[i] by row i of `values`, with several workers, and overwrites `values`. Rows of a
// lazy table first catch up with the steps that they missed.
template <class T>
void change_rows(const VariableUpdate<T>& update, std::span<const int64_t> ids, T* values,
                 int64_t dim, LazyTable* lazy = nullptr);

// Adds 0 to each value. A dense gradient adds its rows to zeros, which turns -0 into 0; this gives
// the same bits.
template <class T>
void add_to_zeros(std::span<T> values);

// Multiplies the values by a factor.
template <class T>
void scale(std::span<T> values, double factor);

// Returns kernels::sum_of_squares() of the values.
template <class T>
double squares_of(std::span<const T> values);

// Returns the first id that is not in [0, rows), or an empty optional.
std::optional<int64_t> first_invalid_id(std::span<const int64_t> ids, int64_t rows);

// Calls kernels::limit_norm() for each of `rows` rows.
template <class T>
void limit_norms(T* values, int64_t rows, int64_t dim, double most);

// Sums rows like sum_rows_to_owners(), but in the order in which Communicator::reduce_scatter()
// sums dense gradients, so the sums have the same bits.
std::vector<distribute::OwnedRows> sum_rows_as_dense(
    distribute::Communicator& communicator, std::span<const distribute::OutgoingRows> tables);

}  // namespace keel
