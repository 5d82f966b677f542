// What communication and computation cost on a machine: the numbers that price redistributions and strategies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace msc {

/// What one step of a redistribution does. All but Slice communicate.
enum class MoveKind : uint8_t { Slice, AllReduce, ReduceScatter, AllGather, AlltoAll, CollectivePermute, Exchange };
inline constexpr size_t moveKinds = 7;

/// "AllReduce", "StridedSlice", ...: the word that dumps and reports use.
const char *moveKindName(MoveKind kind);

/// How a group of ranks lies in the machine: `size` members inside an aligned block of `block` consecutive ranks.
struct GroupShape {
  static constexpr size_t mostParts = 6;
  /// A run of axes of the group: `size` ranks, `stride` apart.
  struct Part {
    int32_t size = 1, stride = 1;
  };

  int64_t size = 1;
  int64_t block = 1;
  std::array<Part, mostParts> parts{}; ///< none: members as far apart as each other
  uint8_t partCount = 0;

  /// One more axis, from the innermost outwards or the other way round. Neighbours are one run, so that a group looks the same
  /// over every device matrix. Runs that do not find room count as lying across all units.
  void add(int64_t members, int64_t stride);
  /// Members inside an aligned unit of so many ranks.
  int64_t membersInside(int64_t unit) const;
};

/// Shape of the groups along `axes` of the device matrix `matrix`.
GroupShape groupShape(const std::vector<int64_t> &matrix, const std::vector<int32_t> &axes);

/// How the ranks of a group go about a collective.
enum class CollectiveAlgorithm : uint8_t {
  Ring,  ///< members - 1 steps
  Tree,  ///< by halves: log2(members) steps
  Switch ///< the network reduces and copies: one step, and an AllReduce receives its tensor once
};
inline constexpr size_t collectiveAlgorithms = 3;

/// "ring", ...: the word of machine files.
const char *collectiveAlgorithmName(CollectiveAlgorithm algorithm);

/// What one kind of collective costs. A rank handles t = received * (1 + ownShare / (members - 1)) bytes: what it receives
/// and, where that takes time too, a share of its own part, which is about received / (members - 1).
///   time = alphaUs + hopUs * steps + betaUsPerByte * t + beyondCacheUsPerByte * max(0, t - cacheBytes)
struct LinkCost {
  double alphaUs = 0;
  double hopUs = 0;
  double betaUsPerByte = 0;
  double ownShare = 0;
  double cacheBytes = 0;
  double beyondCacheUsPerByte = 0;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;

  /// Grows with the group and, at equal size, with the bytes.
  double us(int64_t members, double receivedBytes) const;
};

/// One level of the topology: groups that lie inside aligned units of `ranks` ranks use its links.
struct LinkLevel {
  std::string name;
  int64_t ranks = 0; ///< 0: any number; only the outermost level
  /// AllReduce, ReduceScatter, AllGather and AlltoAll of groups with several members in a unit of the level below do what they
  /// can inside these units; only the rest goes over the links of this level.
  bool isStaged = false;
  std::array<LinkCost, moveKinds> costs{};
};

/// What a device computes in. Its peaks differ, most of all those of products of matrices.
enum class Arithmetic : uint8_t { F32, F64, TF32, BF16, F16 };
inline constexpr size_t arithmetics = 5;

/// "f32", ...: the word of machine files.
const char *arithmeticName(Arithmetic arithmetic);

/// A machine as the cost model sees it. Times are in microseconds, sizes in bytes; README.md says where the numbers of the
/// presets come from.
struct MachineModel {
  std::string name;
  std::string source;            ///< "measured", "estimated", or the data sheet
  int64_t measuredRanks = 0;     ///< ranks that took part in the measurement; 0: none
  std::vector<LinkLevel> levels; ///< innermost first, never empty
  int64_t devices = 0;           ///< that it has; 0: any number
  /// Of one rank, by what it computes in: the peaks of products, of f32 and f64 also those of all else. Types of which nothing is
  /// said: half of f32 for f64, f32 for the others.
  std::array<double, arithmetics> flopsPerUs{1, 0.5, 1, 1, 1};
  Arithmetic productsOfF32 = Arithmetic::F32; ///< TF32 where the device rounds the operands of products to it
  double memoryBytes = 0;        ///< of one rank; 0: unknown
  double memoryBytesPerUs = 1;   ///< of one rank
  double launchUs = 0;           ///< fixed time of starting one operator
  bool overlaps = false;         ///< collectives run beside computation and do not slow it down

  /// Time of one collective whose busiest rank receives `bytes`; a Slice moves `bytes` through memory.
  double moveUs(MoveKind kind, const GroupShape &group, double bytes) const;
  /// Roofline: the slower of arithmetic and memory traffic, plus the launch.
  double operatorUs(double flops, double bytesRead, double bytesWritten, Arithmetic arithmetic = Arithmetic::F32) const;

  /// The same machine where so many ranks run, the first ones: without levels beyond the first that holds all of them. Groups of 3 of 6
  /// ranks lie in a node of 8, although blocks of 3 do not fill it.
  MachineModel amongFirst(int64_t ranks) const;

  /// The preset "cpu-local": ranks are threads of one process on a CPU.
  static const MachineModel &cpuLocal();

private:
  double groupUs(size_t level, MoveKind kind, const GroupShape &group, int64_t members, double bytes) const;
};

} // namespace msc
