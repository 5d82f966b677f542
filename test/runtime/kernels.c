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
