;; Never answers.
;; kind: health
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
