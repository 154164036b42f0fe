// Mirrors src/numerics/mirror_sum.hpp. The class matrices lie in the kernel's own buffer, so the kernel takes the four
// class sums itself, in sequence from the first term, products by mul(); the layout is the header's.

fn mirror_class_sizes(degree: u32) -> vec4<u32> {
  let half = degree / 2u;
  let odd = half * (half + 1u) / 2u;
  return vec4<u32>(odd + half + 1u, odd, odd, odd);
}

fn mirror_slot(orbit: u32, member: u32) -> u32 {
  return 128u * (orbit / 32u) + 32u * member + orbit % 32u;
}

fn mirror_matrix_index(orbit: u32, coefficient: u32, coefficients: u32) -> u32 {
  return 32u * coefficients * (orbit / 32u) + 32u * coefficient + orbit % 32u;
}

// From the sums of the classes A, B, C, D the values at (x,y,z), (x,y,-z), (x,-y,z), (-x,y,z).
fn mirror_members(of_class: vec4<f32>) -> vec4<f32> {
  let a = of_class.x + of_class.y;
  let b = of_class.x - of_class.y;
  let c = of_class.z + of_class.w;
  let d = of_class.z - of_class.w;
  return vec4<f32>(a + c, a - c, b + d, b - d);
}
