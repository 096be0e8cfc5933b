# What Active Record makes of snowflake_id: a String, and a warning, until it is told of the type.

require 'active_record'

KEY = 382304429472247813
ActiveRecord::Base.establish_connection(adapter: 'postgresql')

class TypedOrder < ActiveRecord::Base
end

def check(condition, what)
  condition or raise what
end

connection = ActiveRecord::Base.connection
connection.execute('DROP TABLE IF EXISTS typed_orders')
connection.execute('CREATE TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL)')
check TypedOrder.create!(item: 'lamp').reload.id.is_a?(String), 'a String'

# For config/initializers: the type is one of bigint's.
module SnowflakeId
  def initialize_type_map(map = type_map)
    super
    map.register_type 'snowflake_id', ActiveModel::Type::Integer.new(limit: 8)
  end
end
ActiveRecord::ConnectionAdapters::PostgreSQLAdapter.prepend SnowflakeId
ActiveRecord::Base.establish_connection(adapter: 'postgresql')
TypedOrder.reset_column_information
order = TypedOrder.create!(item: 'lamp')
check order.id.is_a?(Integer), 'an Integer'
check TypedOrder.find(order.id) == order, 'found'
check TypedOrder.where(id: [order.id, KEY]).pluck(:id) == [order.id], 'in a list'
puts 'seen: activerecord'
