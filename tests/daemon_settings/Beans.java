// Prints every property that the daemon's configuration can be given: `bean NAME TYPE`.
import java.beans.PropertyDescriptor;
import org.apache.commons.beanutils.BeanUtilsBean;
import org.apache.commons.beanutils.ConvertUtilsBean;
import org.apache.commons.beanutils.DynaProperty;
import org.apache.commons.beanutils.PropertyUtilsBean;
import software.amazon.kinesis.multilang.config.BuilderDynaBean;
import software.amazon.kinesis.multilang.config.MultiLangDaemonConfiguration;

public class Beans {
    public static void main(String[] arguments) throws Exception {
        ConvertUtilsBean converters = new ConvertUtilsBean();
        show("", new MultiLangDaemonConfiguration(new BeanUtilsBean(converters), converters));
        System.exit(0);
    }

    static void show(String front, Object bean) throws Exception {
        for (PropertyDescriptor property : new PropertyUtilsBean().getPropertyDescriptors(bean)) {
            String name = front + property.getName();
            String type = String.valueOf(property.getPropertyType().getName());
            if (property.getWriteMethod() != null) {
                System.out.println("bean " + name + " " + type);
            } else if (type.endsWith("ConfigBean")) {
                show(name + ".", property.getReadMethod().invoke(bean));
            } else if (type.endsWith("BuilderDynaBean") && name.endsWith("Client")) {
                BuilderDynaBean builder = (BuilderDynaBean) property.getReadMethod().invoke(bean);
                for (DynaProperty inner : builder.getDynaClass().getDynaProperties()) {
                    System.out.println("bean " + name + "." + inner.getName() + " " + inner.getType().getName());
                }
            }
        }
    }
}
