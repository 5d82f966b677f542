// Kernels that stand in for generated code in tests: void symbol(pointers..., begin, end).
typedef long long index;

// slope = 2 scale (p - y), loss += scale sum((p - y)^2)
void mse(const float *p, const float *y, const float *scale, float *slope, float *loss, index begin, index end) {
  float sum = *loss;
  for (index i = begin; i < end; ++i) {
    float difference = p[i] - y[i];
    slope[i] = 2 * *scale * difference;
    sum += *scale * difference * difference;
  }
  *loss = sum;
}

// w -= rate g
void sgd(float *w, const float *g, const float *rate, index begin, index end) {
  for (index i = begin; i < end; ++i)
    w[i] -= *rate * g[i];
}

// marks which task of which range computed an element
void mark(float *out, index begin, index end) {
  for (index i = begin; i < end; ++i)
    out[i] = (float)(1000 * begin + end);
}

/// out[0] = sum of 103 values, as a row that is cut into 5 pieces.
void total(const float *x, float *out, double *scratch, index begin, index end) {
  for (index piece = begin; piece < end && piece < 5; ++piece) {
    double sum = 0;
    for (index i = piece * 24; i < (piece + 1) * 24 && i < 103; ++i)
      sum += x[i];
    scratch[piece] = sum;
  }
  if (end <= 5)
    return;
  double sum = 0;
  for (index piece = 0; piece < 5; ++piece)
    sum += scratch[piece];
  out[0] = (float)sum;
}
