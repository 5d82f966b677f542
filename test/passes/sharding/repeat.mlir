// A body gets one strategy per operator, which is that of all rounds; then the rounds stand one after the other.
// RUN: msc-opt %s --verify-roundtrip | msc-opt --msc-assign-strategies="devices=4" | FileCheck %s --check-prefix=FOLDED
// RUN: msc-opt %s --msc-assign-strategies="devices=4" --msc-unroll | FileCheck %s

net.network @n inputs ["x"] {
^bb0(%x: tensor<8x4xf32>):
  %before = net.param "before" = {kind = "zeros"} : tensor<4xf32>
  %h, %first = net.repeat "i" from -1 to 2 (%x, %x) : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%t: tensor<8x4xf32>, %u: tensor<8x4xf32>):
    %w = net.param "layer.{i}.w" = {kind = "zeros"} : tensor<4x4xf32>
    %m = net.MatMul %t, %w {net.instance_name = "{{i} {i}", net.scope = "net/layer.{i}"} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %r = net.repeat "j" from 0 to 2 (%m) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    ^bb0(%v: tensor<8x4xf32>):
      %a = net.Add %v, %before {net.value_names = ["a.{i}.{j}"]} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      net.yield %a : tensor<8x4xf32>
    }
    net.yield %r, %t : tensor<8x4xf32>, tensor<8x4xf32>
  }
  %behind = net.param "behind" = {kind = "zeros"} : tensor<4xf32>
  %o = net.Add %h, %behind : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  net.return %o, %first names ["o", "first"] : tensor<8x4xf32>, tensor<8x4xf32>
}

// FOLDED: net.repeat "i" from -1 to 2
// FOLDED: net.MatMul {{.*}}net.in_strategy = [array<i64: 4, 1>, array<i64: 1, 1>]
// FOLDED: net.repeat "j" from 0 to 2
// FOLDED: net.Add {{.*}}net.in_strategy = [array<i64: 4, 1>, array<i64: 1>]

// Parameters first, as they were declared.
// CHECK-NOT: net.repeat
// CHECK: net.param "before"
// CHECK-NEXT: net.param "layer.-1.w"
// CHECK-NEXT: net.param "layer.0.w"
// CHECK-NEXT: net.param "layer.1.w"
// CHECK-NEXT: net.param "behind"
// CHECK-NEXT: %[[M:.*]] = net.MatMul %arg0, {{.*}}array<i64: 4, 1>{{.*}}net.instance_name = "{i} -1", net.scope = "net/layer.-1"
// CHECK-NEXT: %[[A:.*]] = net.Add %[[M]], {{.*}}net.value_names = ["a.-1.0"]
// CHECK-NEXT: %[[B:.*]] = net.Add %[[A]], {{.*}}net.value_names = ["a.-1.1"]
// CHECK-NEXT: %[[N:.*]] = net.MatMul %[[B]], {{.*}}net.instance_name = "{i} 0"
// CHECK-NEXT: net.Add %[[N]], {{.*}}net.strategy_origin = "propagated from '{i} 0'"
// CHECK-NEXT: %[[C:.*]] = net.Add
// CHECK-NEXT: net.MatMul %[[C]], {{.*}}net.instance_name = "{i} 1"
// CHECK-NEXT: net.Add
// CHECK-NEXT: %[[D:.*]] = net.Add
// CHECK-NEXT: %[[O:.*]] = net.Add %[[D]], {{.*}}net.strategy_origin = "propagated from 'a.1.1'"
// CHECK-NEXT: net.return %[[O]], %[[C]]
