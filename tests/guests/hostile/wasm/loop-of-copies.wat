;; Copies its memory onto itself again and again.
;; kind: health
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (memory.grow (i32.const 900)))
      (loop
        (memory.copy (i32.const 65536) (i32.const 65537) (i32.const 58982000))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
