;; Has room for nothing: what the host says is larger than the memory that is left.
;; kind: health
;; expect: bad-reply
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (if (result i32) (i32.gt_u (local.get 3) (i32.const 4)) (then (i32.const 65534)) (else (i32.const 32768)))))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    (data (i32.const 600) "/metadata/name")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $get-string (local.get $observed) (i32.const 600) (i32.const 14) (i32.const 700))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
