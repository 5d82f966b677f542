//===- NetOps.td - everything in the net dialect --------------------------===//

#ifndef MSC_DIALECTS_NET_OPS
#define MSC_DIALECTS_NET_OPS

include "dialects/net/Structure.td"
include "dialects/net/ops/matmul/MatMul.td"
include "dialects/net/ops/bias_add/BiasAdd.td"
include "dialects/net/ops/pointwise_unary/PointwiseUnary.td"
include "dialects/net/ops/elementary/Elementary.td"
include "dialects/net/ops/activation/Activation.td"
include "dialects/net/ops/step/Step.td"
include "dialects/net/ops/pointwise_binary/PointwiseBinary.td"
include "dialects/net/ops/division/Division.td"
include "dialects/net/ops/select/Select.td"
include "dialects/net/ops/cast/Cast.td"
include "dialects/net/ops/reduce/Reduce.td"
include "dialects/net/ops/reshape/Reshape.td"
include "dialects/net/ops/transpose/Transpose.td"
include "dialects/net/ops/broadcast/BroadcastTo.td"
include "dialects/net/ops/mse_loss/MSELoss.td"
include "dialects/net/ops/range/Range.td"
include "dialects/net/ops/softmax/Softmax.td"
include "dialects/net/ops/norm/Norm.td"
include "dialects/net/ops/cross_entropy/CrossEntropy.td"
include "dialects/net/ops/conv/Conv.td"
include "dialects/net/ops/pool/Pool.td"
include "dialects/net/ops/batch_norm/BatchNorm.td"
include "dialects/net/ops/loss/Loss.td"
include "dialects/net/ops/one_hot/OneHot.td"
include "dialects/net/ops/extremum/Extremum.td"
include "dialects/net/ops/gather/Gather.td"
include "dialects/net/ops/scan/Scan.td"
include "dialects/net/ops/attention/Attention.td"
include "dialects/net/ops/optimizer/Optimizer.td"

#endif // MSC_DIALECTS_NET_OPS
