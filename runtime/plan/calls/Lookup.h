// Tables and the rows that indices number, as the checker and the kernels see them.
#pragma once

#include "runtime/plan/calls/Call.h"

namespace msc {

/// A table seen as (outer, rows, inner): the dimensions in front of the one that is numbered, that one, those behind it.
struct Lookup {
  int64_t outer = 1, inner = 1; ///< this rank's
  int64_t count = 1;            ///< indices on this rank
  Range rows;                   ///< of the numbered dimension, on this rank
  int64_t size = 0;             ///< of the numbered dimension, globally
  int64_t offset = 0;           ///< the number of row 0
};

/// Which tensors of a call are the table, the indices, and the rows that they number.
struct LookupTensors {
  const CallTensor *table = nullptr, *indices = nullptr, *rows = nullptr;
  int64_t axis = 0; ///< may be negative
};

/// Of the kernels Gather, EmbeddingLookup, GatherGrad, UnsortedSegmentSum and its extrema.
LookupTensors lookupTensors(const CallSpec &spec);

/// Of a call that was checked.
Lookup lookupOf(const CallSpec &spec);

/// Of the kernels GatherD and GatherDGrad: operands and results in the order (table, indices, rows), and the dimension,
/// which may be negative. `rows` has the shape of `indices`.
LookupTensors alongsideTensors(const CallSpec &spec);
Lookup alongsideOf(const CallSpec &spec);

} // namespace msc
